/*
 * span: ord:place
 * spans: (?=.*pay:auth)(?=.*stock:lock)
 * expect: (?s)(?=.*(pay:auth))(?=.*(waits for mutex|stock:lock))(?=.*(mail:queue))
 */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *restock(void *x)
{
	name_thread("restock");
	while (!stop) {
		snooze(32000);
		kymo_span_begin(stock, lock);
		pthread_mutex_lock(&m);
		snooze(2500);
		pthread_mutex_unlock(&m);
		kymo_span_end(stock, lock);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(ord, place);
		spin(about(30));
		kymo_span_begin(pay, auth);
		spin(about(chance(.03) ? 1500 : 30));
		kymo_span_end(pay, auth);
		pthread_mutex_lock(&m);
		spin(about(5));
		pthread_mutex_unlock(&m);
		if (chance(.03)) {
			kymo_span_begin(mail, queue);
			snooze(1400);
			kymo_span_end(mail, queue);
		}
		kymo_span_end(ord, place);
		snooze(400);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, restock, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
