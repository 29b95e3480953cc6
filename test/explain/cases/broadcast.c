/* span: wk:task expect: \(subscriber\) held in sub:apply */
/* Sixteen waiters of a condition are woken at once, and each works with the mutex. */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int gen;
static atomic_int stop;
static void *waiter(void *x)
{
	name_thread("subscriber");
	pthread_mutex_lock(&m);
	while (!stop) {
		int g = gen;
		while (g == gen && !stop)
			pthread_cond_wait(&c, &m);
		kymo_span_begin(sub, apply);
		spin(250);
		kymo_span_end(sub, apply);
	}
	pthread_mutex_unlock(&m);
	return x;
}
static void *ticker(void *x)
{
	name_thread("ticker");
	while (!stop) {
		snooze(25000);
		pthread_mutex_lock(&m);
		gen++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return x;
}
int main(void)
{
	pthread_t t[17];
	spin(1);
	for (int i = 0; i < 16; i++)
		pthread_create(t + i, 0, waiter, 0);
	pthread_create(t + 16, 0, ticker, 0);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(wk, task);
		spin(about(40));
		pthread_mutex_lock(&m);
		spin(about(8));
		pthread_mutex_unlock(&m);
		spin(about(20));
		kymo_span_end(wk, task);
		snooze(500);
	}
	stop = 1;
	for (int i = 16; i >= 0; i--) {
		pthread_mutex_lock(&m);
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
		pthread_join(t[i], 0);
	}
}
