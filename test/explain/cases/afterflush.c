/* span: page:view expect: db:load */
#include "common.h"
static atomic_int version;
static atomic_bool stop;
static void *flusher(void *x)
{
	name_thread("deployer");
	while (!stop) {
		snooze(60000);
		kymo_event(cache, flush, kymo_i32(n, 1));
		version++;
	}
	return x;
}
static void *work(void *x)
{
	int have[10] = {0};
	for (int i = 0; i < 900; i++) {
		int k = below(10), v = version;
		kymo_span_begin(page, view, kymo_i32(page, k));
		spin(about(35));
		kymo_span_begin(cache, get);
		if (have[k] != v) {
			kymo_span_begin(db, load);
			snooze(700);
			kymo_span_end(db, load);
			have[k] = v;
		}
		kymo_span_end(cache, get);
		kymo_span_end(page, view);
		snooze(500);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, flusher, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
