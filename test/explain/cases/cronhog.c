/* span: web:ping expect: cron:rollup */
#include "common.h"
static atomic_bool stop;
static void *cron(void *x)
{
	name_thread("cron");
	while (!stop) {
		snooze(120000);
		kymo_span_begin(cron, rollup);
		spin(14000);
		kymo_span_end(cron, rollup);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(web, ping);
		spin(about(300));
		kymo_span_end(web, ping);
		snooze(600);
	}
	return x;
}
int main(void)
{
	pthread_t t[5];
	spin(1);
	for (int i = 0; i < 5; i++)
		pthread_create(&t[i], 0, cron, 0);
	run_threads(2, work);
	stop = 1;
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], 0);
}
