/* span: cfg:read expect: cfg:publish */
#include "clock.h"
static int locked, done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k) {
		while (!__atomic_load_n(&done, 0)) {
			usleep(30000);
			__atomic_store_n(&locked, 1, 0);
			kymo_span_begin(cfg, publish);
			busy(1600);
			kymo_span_end(cfg, publish);
			__atomic_store_n(&locked, 0, 0);
		}
		return x;
	}
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(cfg, read, kymo_i32(key, pick(40)));
		while (__atomic_load_n(&locked, 0))
			sched_yield();
		busy(15);
		kymo_span_end(cfg, read);
		usleep(150);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
