/* span: db:put expect: lsm:flush */
#include "common.h"
static atomic_int flushing, stop;
static void *bg(void *x)
{
	name_thread("lsm-bg");
	while (!stop) {
		snooze(30000);
		flushing = 1;
		kymo_span_begin(lsm, flush);
		spin(2500);
		kymo_span_end(lsm, flush);
		flushing = 0;
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, NULL, bg, NULL);
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(db, put, kymo_i32(bytes, 10 + below(500)));
		spin(about(60));
		if (flushing)
			while (flushing)
				snooze(100);
		kymo_span_end(db, put);
		snooze(200);
	}
	stop = 1;
	pthread_join(t, NULL);
}
