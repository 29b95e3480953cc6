/* span: job:run
 * expect: (it sleeps in job:run;lease:take;clock_nanosleep\(\)|tries mutexes).*in lease:sweep */
#include "common.h"
static pthread_mutex_t lease = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *sweeper(void *x)
{
	name_thread("sweeper");
	while (!stop) {
		snooze(70000);
		pthread_mutex_lock(&lease);
		kymo_span_begin(lease, sweep);
		snooze(7000);
		kymo_span_end(lease, sweep);
		pthread_mutex_unlock(&lease);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(job, run, kymo_i32(job, below(100000)));
		spin(about(50));
		kymo_span_begin(lease, take);
		for (double us = 200; pthread_mutex_trylock(&lease); us *= 2)
			snooze(us);
		kymo_span_end(lease, take);
		spin(4);
		pthread_mutex_unlock(&lease);
		spin(about(40));
		kymo_span_end(job, run);
		snooze(about(1500));
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, sweeper, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
