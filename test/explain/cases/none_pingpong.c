/* span: n:op expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		double t = .5 + exponential(.5);
		kymo_span_begin(n, op, kymo_i32(k, below(6)));
		for (int k = 0; k < 12; k++) {
			kymo_event(n, step, kymo_i32(k, k));
			spin(8 * t);
		}
		pthread_mutex_lock(&m);
		spin(1);
		pthread_mutex_unlock(&m);
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
