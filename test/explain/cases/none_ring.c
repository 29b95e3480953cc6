/* span: cons:item expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int n;
static void *produce(void *x)
{
	for (int i = 0; i < 1200; i++) {
		spin(70 * exp(.3 * normal()));
		snooze(150);
		pthread_mutex_lock(&m);
		n++;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	return x;
}
int main(void)
{
	pthread_t t;

	spin(1);
	pthread_create(&t, NULL, produce, NULL);
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(cons, item, kymo_i32(lane, below(6)));
		pthread_mutex_lock(&m);
		while (!n)
			pthread_cond_wait(&c, &m);
		n--;
		pthread_mutex_unlock(&m);
		spin(20);
		kymo_span_end(cons, item);
	}
	pthread_join(t, NULL);
}
