/* span: n:op expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, op, kymo_string(s, below(2) ? "p" : "q"));
		spin(120 * exp(.6 * normal()));
		pthread_mutex_lock(&m);
		spin(2);
		pthread_mutex_unlock(&m);
		kymo_span_end(n, op);
		snooze(exponential(400));
	}
	return x;
}
int main(void)
{
	run_threads(4, work);
}
