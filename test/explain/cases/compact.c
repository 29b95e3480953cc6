/* span: ts:write expect: lsm:compact */
#include "common.h"
static atomic_bool stall, stop;
static void *compactor(void *x)
{
	name_thread("compactor");
	while (!stop) {
		snooze(42000);
		kymo_span_begin(lsm, compact);
		stall = 1;
		snooze(5000);
		stall = 0;
		kymo_span_end(lsm, compact);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(ts, write, kymo_i32(points, below(50)));
		spin(about(40));
		while (stall)
			snooze(50);
		kymo_span_end(ts, write);
		snooze(500);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, compactor, 0);
	run_threads(3, work);
	stop = 1;
	pthread_join(t, 0);
}
