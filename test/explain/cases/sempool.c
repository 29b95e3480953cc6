/* span: dal:query expect: dal:acquire */
#include "common.h"
#include <semaphore.h>
static sem_t slots;
static atomic_bool stop;
static void *report(void *x)
{
	name_thread("report");
	while (!stop) {
		snooze(45000);
		kymo_span_begin(report, month);
		sem_wait(&slots);
		sem_wait(&slots);
		snooze(6000);
		sem_post(&slots);
		sem_post(&slots);
		kymo_span_end(report, month);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(dal, query);
		kymo_span_begin(dal, acquire);
		sem_wait(&slots);
		kymo_span_end(dal, acquire);
		spin(about(60));
		sem_post(&slots);
		kymo_span_end(dal, query);
		snooze(700);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	sem_init(&slots, 0, 2);
	spin(1);
	pthread_create(&t, 0, report, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
