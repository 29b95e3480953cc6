/* span: rpc:ping expect: net:rtt */
#include "clock.h"
static int rtt = 250, done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k == 0) {
		while (!__atomic_load_n(&done, 0)) {
			int v = pick(10) ? 200 + pick(100) : 1500 + pick(200);
			__atomic_store_n(&rtt, v, 0);
			kymo_counter(net, rtt, v);
			usleep(6000);
		}
		return x;
	}
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(rpc, ping, kymo_i32(peer, pick(12)));
		usleep((unsigned)__atomic_load_n(&rtt, 0));
		kymo_span_end(rpc, ping);
		usleep(200);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
