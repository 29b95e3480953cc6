/* span: web:page expect: (pool:acquire|report:run) */
#include "clock.h"
#include <semaphore.h>
static sem_t pool;
static int done;
static void *report(void *x)
{
	prctl(PR_SET_NAME, "reporter");
	while (!__atomic_load_n(&done, 0)) {
		usleep(50000);
		kymo_span_begin(report, run);
		for (int i = 0; i < 4; i++)
			sem_wait(&pool);
		usleep(5000);
		for (int i = 0; i < 4; i++)
			sem_post(&pool);
		kymo_span_end(report, run);
	}
	return x;
}
static void *page(void *x)
{
	for (int i = 0; i < 450; i++) {
		kymo_span_begin(web, page, kymo_i32(user, pick(90)));
		kymo_span_begin(pool, acquire);
		sem_wait(&pool);
		kymo_span_end(pool, acquire);
		busy(70);
		sem_post(&pool);
		kymo_span_end(web, page);
		usleep(700);
	}
	return x;
}
int main(void)
{
	pthread_t t[3], r;
	sem_init(&pool, 0, 4);
	pthread_create(&r, 0, report, 0);
	start(t, 3, page);
	finish(t, 3);
	__atomic_store_n(&done, 1, 0);
	pthread_join(r, 0);
}
