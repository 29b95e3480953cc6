/* span: n:op expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, op);
		kymo_span_begin(n, one);
		snooze(exponential(150));
		kymo_span_end(n, one);
		kymo_span_begin(n, two);
		snooze(exponential(150));
		kymo_span_end(n, two);
		kymo_span_end(n, op);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
