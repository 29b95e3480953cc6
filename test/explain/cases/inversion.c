/* span: hi:act spans: low:scan expect: waits for mutex .*held in low:scan */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *low(void *x)
{
	name_thread("low");
	if (nice(10) == -1)
		return x;
	while (!stop) {
		kymo_span_begin(low, scan);
		pthread_mutex_lock(&m);
		spin(700);
		pthread_mutex_unlock(&m);
		kymo_span_end(low, scan);
		snooze(21000);
	}
	return x;
}
static void *medium(void *x)
{
	name_thread("medium");
	while (!stop) {
		kymo_span_begin(med, crunch);
		spin(3000);
		kymo_span_end(med, crunch);
		snooze(4000);
	}
	return x;
}
int main(void)
{
	pthread_t l, k[2];
	spin(1);
	pthread_create(&l, 0, low, 0);
	pthread_create(&k[0], 0, medium, 0);
	pthread_create(&k[1], 0, medium, 0);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(hi, act);
		spin(about(30));
		pthread_mutex_lock(&m);
		spin(about(5));
		pthread_mutex_unlock(&m);
		kymo_span_end(hi, act);
		snooze(500);
	}
	stop = 1;
	pthread_join(l, 0);
	pthread_join(k[0], 0);
	pthread_join(k[1], 0);
}
