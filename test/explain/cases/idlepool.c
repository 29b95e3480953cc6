/* span: pool:get expect: pool:idle */
#include "clock.h"
static int idle = 4, done;
static void *churn(void *x)
{
	while (!__atomic_load_n(&done, 0)) {
		int n = pick(9) ? 1 + pick(5) : 0;
		__atomic_store_n(&idle, n, 0);
		kymo_counter(pool, idle, n);
		usleep(5000);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, churn, 0);
	usleep(1000);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(pool, get, kymo_i32(who, pick(100)));
		busy(25 + pick(10));
		if (!__atomic_load_n(&idle, 0))
			busy(700);
		kymo_span_end(pool, get);
		usleep(250);
	}
	__atomic_store_n(&done, 1, 0);
	pthread_join(t, 0);
}
