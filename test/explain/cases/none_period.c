/* span: n:op expect: nothing */
#include "common.h"
static atomic_bool stop;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static void *beat(void *x)
{
	while (!stop) {
		snooze(10000);
		kymo_span_begin(hb, send);
		pthread_mutex_lock(&other);
		snooze(2000);
		pthread_mutex_unlock(&other);
		kymo_span_end(hb, send);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(n, op);
		spin(20 + exponential(70));
		kymo_span_begin(n, sub);
		spin(20 + exponential(70));
		kymo_span_end(n, sub);
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, beat, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
