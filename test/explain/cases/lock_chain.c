/*
 * span: s:handle
 * spans: (audit:append|fsync)
 * expect: waits for mutex .*(fsync:flush|disk|fsync)
 */
#include "common.h"
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static void *disk(void *x)
{
	name_thread("disk");
	while (!stop) {
		snooze(40000);
		pthread_mutex_lock(&b);
		kymo_span_begin(fsync, flush);
		snooze(5000);
		kymo_span_end(fsync, flush);
		pthread_mutex_unlock(&b);
	}
	return x;
}
static void *auditor(void *x)
{
	name_thread("auditor");
	while (!stop) {
		snooze(700);
		kymo_span_begin(audit, append);
		pthread_mutex_lock(&a);
		pthread_mutex_lock(&b);
		spin(5);
		pthread_mutex_unlock(&b);
		pthread_mutex_unlock(&a);
		kymo_span_end(audit, append);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(s, handle);
		spin(about(60));
		pthread_mutex_lock(&a);
		spin(about(4));
		pthread_mutex_unlock(&a);
		kymo_span_end(s, handle);
		snooze(300);
	}
	return x;
}
int main(void)
{
	pthread_t t, u;
	spin(1);
	pthread_create(&t, 0, disk, 0);
	pthread_create(&u, 0, auditor, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
	pthread_join(u, 0);
}
