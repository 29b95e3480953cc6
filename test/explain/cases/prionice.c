/* span: api:get expect: mutex.*(indexer|index:update) */
#include "common.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static void pin(int c)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(c, &s);
	sched_setaffinity(0, sizeof(s), &s);
}
static void *indexer(void *x)
{
	name_thread("indexer");
	pin(1);
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	while (!stop) {
		snooze(9000);
		pthread_mutex_lock(&m);
		kymo_span_begin(index, update);
		spin(600);
		kymo_span_end(index, update);
		pthread_mutex_unlock(&m);
	}
	return x;
}
static void *hog(void *x)
{
	name_thread("cruncher");
	pin(1);
	while (!stop) {
		spin(4000);
		snooze(300);
	}
	return x;
}
int main(void)
{
	pthread_t a, b;
	spin(1);
	pthread_create(&a, NULL, indexer, NULL);
	pthread_create(&b, NULL, hog, NULL);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(api, get, kymo_i32(key, below(100)));
		spin(about(60));
		pthread_mutex_lock(&m);
		spin(about(20));
		pthread_mutex_unlock(&m);
		spin(about(30));
		kymo_span_end(api, get);
		snooze(exponential(700));
	}
	stop = 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}
