/* span: q:take expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int n, stop;
static void *prod(void *x)
{
	for (int i = 0; i < 1200; i++) {
		snooze(exponential(400));
		pthread_mutex_lock(&m);
		n++;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	pthread_mutex_lock(&m);
	stop = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, NULL, prod, NULL);
	for (int go = 1; go;) {
		pthread_mutex_lock(&m);
		while (!n && !stop)
			pthread_cond_wait(&c, &m);
		go = n > 0;
		if (n)
			n--;
		pthread_mutex_unlock(&m);
		kymo_span_begin(q, take, kymo_i32(left, n));
		spin(exponential(80) + 20);
		kymo_span_end(q, take);
	}
	pthread_join(t, NULL);
}
