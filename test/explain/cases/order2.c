/*
 * span: acct:update
 * spans: (backup:copy|audit:entry)
 * expect: waits for mutex .*backup.*held in backup:copy
 */
#include "common.h"
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *backup(void *x)
{
	name_thread("backup");
	while (!stop) {
		snooze(30000);
		kymo_span_begin(backup, copy);
		pthread_mutex_lock(&b);
		snooze(4000);
		pthread_mutex_unlock(&b);
		kymo_span_end(backup, copy);
	}
	return x;
}
static void *auditor(void *x)
{
	name_thread("auditor");
	while (!stop) {
		kymo_span_begin(audit, entry);
		pthread_mutex_lock(&a);
		spin(about(10));
		pthread_mutex_lock(&b);
		spin(about(5));
		pthread_mutex_unlock(&b);
		pthread_mutex_unlock(&a);
		kymo_span_end(audit, entry);
		snooze(700);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(acct, update);
		spin(about(30));
		pthread_mutex_lock(&a);
		spin(about(6));
		pthread_mutex_unlock(&a);
		kymo_span_end(acct, update);
		snooze(600);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	spin(1);
	pthread_create(&t[0], 0, backup, 0);
	pthread_create(&t[1], 0, auditor, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
}
