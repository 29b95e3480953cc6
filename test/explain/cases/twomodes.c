/*
 * span: cache:read
 * spans: (?=.*disk:load)(?=.*evict:run)
 * expect: waits for mutex .*held in evict:run
 */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static void *evict(void *x)
{
	name_thread("evict");
	while (!stop) {
		snooze(30000);
		kymo_span_begin(evict, run);
		pthread_mutex_lock(&m);
		snooze(3000);
		pthread_mutex_unlock(&m);
		kymo_span_end(evict, run);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(cache, read, kymo_i32(k, below(500)));
		pthread_mutex_lock(&m);
		spin(about(8));
		pthread_mutex_unlock(&m);
		if (chance(.45)) {
			kymo_span_begin(disk, load);
			spin(about(160));
			kymo_span_end(disk, load);
		}
		kymo_span_end(cache, read);
		snooze(300);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, evict, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
