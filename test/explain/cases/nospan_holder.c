/* span: mem:get spans: nothing recorded expect: waits for mutex .*(sweeper|sweep) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
__attribute__((noinline)) static void sweep_all(void)
{
	pthread_mutex_lock(&m);
	snooze(3000);
	pthread_mutex_unlock(&m);
}
static void *sweeper(void *x)
{
	name_thread("sweeper");
	while (!stop) {
		snooze(25000);
		sweep_all();
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(mem, get);
		spin(about(20));
		pthread_mutex_lock(&m);
		spin(about(5));
		pthread_mutex_unlock(&m);
		kymo_span_end(mem, get);
		snooze(400);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, sweeper, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
