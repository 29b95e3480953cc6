/* span: api:query expect: pool:acquire|report:build|sem */
#include "common.h"
#include <semaphore.h>
static sem_t pool;
static atomic_int stop;
static void *report(void *x)
{
	name_thread("reporter");
	while (!stop) {
		snooze(25000);
		for (int i = 0; i < 2; i++)
			sem_wait(&pool);
		kymo_span_begin(report, build);
		snooze(5000);
		kymo_span_end(report, build);
		for (int i = 0; i < 2; i++)
			sem_post(&pool);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(api, query, kymo_i32(table, below(9)));
		kymo_span_begin(pool, acquire);
		sem_wait(&pool);
		kymo_span_end(pool, acquire);
		spin(about(100));
		sem_post(&pool);
		kymo_span_end(api, query);
		snooze(exponential(600));
	}
	return x;
}
int main(void)
{
	pthread_t t;
	sem_init(&pool, 0, 2);
	spin(1);
	pthread_create(&t, NULL, report, NULL);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, NULL);
}
