/* span: n:op expect: nothing */
#include "common.h"
static atomic_bool stop;
static void *tick(void *x)
{
	while (!stop) {
		kymo_span_begin(bg, tick);
		snooze(3000);
		kymo_span_end(bg, tick);
		snooze(3000);
	}
	return x;
}
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(n, op, kymo_i32(a, below(100)), kymo_i32(b, below(5)));
		spin(60 * exp(.8 * normal()));
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, tick, 0);
	run_threads(2, work);
	stop = 1;
	pthread_join(t, 0);
}
