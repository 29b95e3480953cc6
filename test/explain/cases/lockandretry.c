/* span: shop:order expect: (?=.*stock:reindex)(?=.*pay:auth) spans: pay:auth */
#include "clock.h"
static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *reindex(void *x)
{
	prctl(PR_SET_NAME, "reindexer");
	while (!__atomic_load_n(&done, 0)) {
		usleep(40000);
		pthread_mutex_lock(&stock);
		kymo_span_begin(stock, reindex);
		busy(3000);
		kymo_span_end(stock, reindex);
		pthread_mutex_unlock(&stock);
	}
	return x;
}
static void *shop(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(shop, order, kymo_i32(sku, pick(5000)));
		busy(40);
		pthread_mutex_lock(&stock);
		busy(10);
		pthread_mutex_unlock(&stock);
		for (int n = pick(25) ? 1 : 5; n--;) {
			kymo_span_begin(pay, auth);
			usleep(500);
			kymo_span_end(pay, auth);
		}
		kymo_span_end(shop, order);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[2], r;
	pthread_create(&r, 0, reindex, 0);
	start(t, 2, shop);
	finish(t, 2);
	__atomic_store_n(&done, 1, 0);
	pthread_join(r, 0);
}
