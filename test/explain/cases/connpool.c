/* span: web:order expect: condition .*(nightly|report:nightly) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int n_free = 3;
static atomic_bool stop;
static void take(int n)
{
	pthread_mutex_lock(&m);
	while (n_free < n)
		pthread_cond_wait(&c, &m);
	n_free -= n;
	pthread_mutex_unlock(&m);
}
static void give(int n)
{
	pthread_mutex_lock(&m);
	n_free += n;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
}
static void *nightly(void *x)
{
	name_thread("nightly");
	while (!stop) {
		snooze(50000);
		kymo_span_begin(report, nightly);
		take(3);
		snooze(5000);
		give(3);
		kymo_span_end(report, nightly);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(web, order);
		spin(about(20));
		take(1);
		kymo_span_begin(db, exec);
		spin(about(50));
		kymo_span_end(db, exec);
		give(1);
		kymo_span_end(web, order);
		snooze(600);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, nightly, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
