/* span: mail:send expect: poll\(\) for a timer */
/* One lookup of ten is lost: poll ends after 12 ms, and it asks again. */
#include "common.h"
#include <poll.h>
#include <netinet/in.h>
#include <sys/socket.h>
static int srv;
static struct sockaddr_in a;
static void *server(void *x)
{
	name_thread("resolver");
	char b[64];
	struct sockaddr_in f;
	for (;;) {
		socklen_t l = sizeof f;
		int n = recvfrom(srv, b, 64, 0, (void *)&f, &l);
		if (n < 0)
			return x;
		if (chance(.1))
			continue;
		sendto(srv, b, n, 0, (void *)&f, l);
	}
}
int main(void)
{
	socklen_t l = sizeof a;
	pthread_t t;
	spin(1);
	srv = socket(AF_INET, SOCK_DGRAM, 0);
	a.sin_family = AF_INET;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(srv, (void *)&a, sizeof a);
	getsockname(srv, (void *)&a, &l);
	pthread_create(&t, 0, server, 0);
	int f = socket(AF_INET, SOCK_DGRAM, 0);
	connect(f, (void *)&a, sizeof a);
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(mail, send);
		spin(about(60));
		char b[64] = "q";
		for (;;) {
			if (write(f, b, 20) < 0)
				return 1;
			struct pollfd p = {f, POLLIN, 0};
			if (poll(&p, 1, 12) == 1) {
				if (read(f, b, 64) < 0)
					return 1;
				break;
			}
		}
		spin(about(30));
		kymo_span_end(mail, send);
		snooze(400);
	}
	_exit(0);
}
