/* span: rpc:call expect: (rpc:recv|split|attachment) */
#include "clock.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
static struct sockaddr_in a = {.sin_family = AF_INET};
static void *server(void *x)
{
	int l = (int)(intptr_t)x, s = accept(l, 0, 0);
	char b[4096];
	prctl(PR_SET_NAME, "server");
	for (;;) {
		uint32_t need = 0, have = 0;
		ssize_t n;
		while (have < 4 || have < need) {
			n = recv(s, b + have, sizeof(b) - have, 0);
			if (n <= 0)
				return x;
			have += (uint32_t)n;
			memcpy(&need, b, 4);
		}
		if (send(s, "ok", 2, 0) < 0)
			return x;
	}
}
int main(void)
{
	int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof(a);
	pthread_t t;
	char b[2048];
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(l, (void *)&a, sizeof(a));
	listen(l, 4);
	getsockname(l, (void *)&a, &n);
	pthread_create(&t, 0, server, (void *)(intptr_t)l);
	if (connect(s, (void *)&a, sizeof(a)))
		return 1;
	for (int i = 0; i < 600; i++) {
		int attachment = !pick(18);
		uint32_t len = attachment ? 900 : 100;
		memcpy(b, &len, 4);
		kymo_span_begin(
			rpc, call, kymo_i32(method, pick(7)), kymo_bool(attachment, attachment));
		kymo_span_begin(rpc, send);
		if (attachment) { /* write, write, read */
			send(s, b, 100, 0);
			send(s, b + 100, 800, 0);
		} else
			send(s, b, 100, 0);
		kymo_span_end(rpc, send);
		kymo_span_begin(rpc, recv);
		recv(s, b, 2, 0);
		kymo_span_end(rpc, recv);
		kymo_span_end(rpc, call);
	}
	shutdown(s, SHUT_RDWR);
	pthread_join(t, 0);
}
