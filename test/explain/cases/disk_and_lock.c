/*
 * span: obj:get
 * spans: (?=.*disk:seek)(?=.*evict:sweep)
 * expect: (?s)(disk:seek.*because.*waits for mutex|waits for mutex.*because.*disk:seek)
 */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *evictor(void *x)
{
	name_thread("evictor");
	while (!stop) {
		snooze(28000);
		kymo_span_begin(evict, sweep);
		pthread_mutex_lock(&m);
		spin(1800);
		pthread_mutex_unlock(&m);
		kymo_span_end(evict, sweep);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(obj, get);
		spin(about(30));
		pthread_mutex_lock(&m);
		spin(about(4));
		pthread_mutex_unlock(&m);
		if (chance(.03)) {
			kymo_span_begin(disk, seek);
			snooze(1500);
			kymo_span_end(disk, seek);
		}
		kymo_span_end(obj, get);
		snooze(500);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, evictor, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
