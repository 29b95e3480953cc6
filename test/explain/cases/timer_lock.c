/*
 * span: m:update
 * spans: metrics:scrape
 * expect: waits for mutex .*scraper.* held in metrics:scrape
 */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static void *scraper(void *x)
{
	name_thread("scraper");
	while (!stop) {
		snooze(50000);
		kymo_span_begin(metrics, scrape);
		pthread_mutex_lock(&m);
		spin(2500);
		pthread_mutex_unlock(&m);
		kymo_span_end(metrics, scrape);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(m, update);
		spin(about(30));
		pthread_mutex_lock(&m);
		spin(about(3));
		pthread_mutex_unlock(&m);
		kymo_span_end(m, update);
		snooze(300);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, scraper, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
