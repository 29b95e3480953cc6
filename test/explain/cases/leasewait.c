/* span: job:run expect: mutex.*(janitor|lease:sweep)|lease:sweep */
#include "common.h"
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static void *janitor(void *x)
{
	name_thread("janitor");
	while (!stop) {
		snooze(40000);
		pthread_mutex_lock(&table);
		kymo_span_begin(lease, sweep);
		for (int i = 0; i < 20; i++) {
			spin(60);
			snooze(80);
		}
		kymo_span_end(lease, sweep);
		pthread_mutex_unlock(&table);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(job, run, kymo_i32(id, below(10000)));
		spin(about(60));
		pthread_mutex_lock(&table);
		spin(2);
		pthread_mutex_unlock(&table);
		spin(about(60));
		kymo_span_end(job, run);
		snooze(exponential(800));
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, NULL, janitor, NULL);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, NULL);
}
