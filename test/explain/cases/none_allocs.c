/* span: n:op expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int n = below(12);
		double t = exponential(.5) + exponential(.5);
		kymo_span_begin(n, op, kymo_i32(size, below(50)));
		spin(40 * t);
		for (int k = 0; k < n; k++)
			free(malloc(64));
		pthread_mutex_lock(&m);
		spin(3);
		pthread_mutex_unlock(&m);
		spin(60 * t);
		kymo_span_end(n, op);
		snooze(exponential(300));
	}
	return x;
}
int main(void)
{
	run_threads(4, work);
}
