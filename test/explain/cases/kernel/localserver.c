/* span: rpc:get expect: until thread \d+ \(pricer\) wakes it, which is in price:model */
/* A server on the loopback (TCP), slow for one item in 20. */
#include "common.h"
#include <signal.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t l = sizeof a;
	int one = 1;
	spin(1);
	int ls = socket(AF_INET, SOCK_STREAM, 0);
	bind(ls, (void *)&a, sizeof a);
	getsockname(ls, (void *)&a, &l);
	listen(ls, 5);
	pid_t c = fork();
	if (!c) {
		int f = accept(ls, 0, 0), v;
		name_thread("pricer");
		setsockopt(f, 6, TCP_NODELAY, &one, 4);
		while (read(f, &v, 4) == 4) {
			if (v % 23 == 7) {
				kymo_span_begin(price, model);
				spin(4000);
				kymo_span_end(price, model);
			} else
				spin(60);
			if (write(f, &v, 4) < 0)
				break;
		}
		_exit(0);
	}
	int f = socket(AF_INET, SOCK_STREAM, 0);
	connect(f, (void *)&a, sizeof a);
	setsockopt(f, 6, TCP_NODELAY, &one, 4);
	for (int i = 0; i < 900; i++) {
		int v = below(2300);
		kymo_span_begin(rpc, get, kymo_i32(x, below(7)));
		spin(about(30));
		if (write(f, &v, 4) < 0 || read(f, &v, 4) < 0)
			return 1;
		spin(about(20));
		kymo_span_end(rpc, get);
		snooze(500);
	}
	kill(c, SIGKILL);
	wait(0);
}
