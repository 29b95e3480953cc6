/* span: inv:reserve expect: (?=.*mutex)(?=.*tax:lookup) spans: tax:lookup */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *count(void *x)
{
	prctl(PR_SET_NAME, "stocktaker");
	while (!__atomic_load_n(&done, 0)) {
		usleep(30000);
		pthread_mutex_lock(&m);
		kymo_span_begin(stock, take);
		usleep(2500);
		kymo_span_end(stock, take);
		pthread_mutex_unlock(&m);
	}
	return x;
}
static void *w(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(inv, reserve, kymo_i32(sku, pick(900)));
		pthread_mutex_lock(&m);
		busy(10);
		pthread_mutex_unlock(&m);
		kymo_span_begin(tax, lookup, kymo_i32(zone, pick(40)));
		busy(30);
		if (!pick(18))
			usleep(2200);
		kymo_span_end(tax, lookup);
		kymo_span_end(inv, reserve);
		usleep(300);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], c;
	pthread_create(&c, 0, count, 0);
	start(t, 2, w);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(c, 0);
}
