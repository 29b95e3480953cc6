/* span: rpc:ask expect: (calc:answer|peer) */
#include "common.h"
#include <sys/socket.h>
static int s[2];
static void *peer(void *x)
{
	int v;
	name_thread("peer");
	while (read(s[1], &v, sizeof(v)) == sizeof(v) && v >= 0) {
		kymo_span_begin(calc, answer);
		spin(about(v % 17 == 3 ? 2800 : 40));
		kymo_span_end(calc, answer);
		if (write(s[1], &v, sizeof(v)) < 0)
			break;
	}
	return x;
}
int main(void)
{
	pthread_t t;
	int v = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		return 1;
	spin(1);
	pthread_create(&t, 0, peer, 0);
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(rpc, ask, kymo_i32(n, below(50)));
		spin(about(40));
		if (write(s[0], &i, sizeof(i)) < 0 || read(s[0], &v, sizeof(v)) < 0)
			return 1;
		kymo_span_end(rpc, ask);
		snooze(400);
	}
	v = -1;
	if (write(s[0], &v, sizeof(v)) < 0)
		return 1;
	pthread_join(t, 0);
}
