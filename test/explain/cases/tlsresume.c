/* span: tls:accept expect: resumed */
#include "clock.h"
static void *acceptor(void *x)
{
	for (int i = 0; i < 500; i++) {
		int resumed = pick(12) != 0;
		kymo_span_begin(tls, accept, kymo_bool(resumed, resumed),
			kymo_i32(version, pick(3) ? 13 : 12), kymo_i32(peer, pick(255)));
		busy(resumed ? 40 + pick(20) : 900 + pick(300));
		kymo_span_end(tls, accept);
		usleep(250);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, acceptor);
	finish(t, 2);
}
