/* span: cart:save expect: mutex .*cart:merge spans: cart:merge */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 350; i++) {
		kymo_span_begin(cart, save, kymo_i32(user, pick(300)));
		busy(20);
		pthread_mutex_lock(&m);
		if (!pick(60)) {
			kymo_span_begin(cart, merge);
			usleep(3500);
			kymo_span_end(cart, merge);
		}
		busy(5);
		pthread_mutex_unlock(&m);
		kymo_span_end(cart, save);
		usleep(400);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 4, work);
	finish(t, 4);
}
