/* span: n:op expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, op, kymo_string(u, below(3) ? "a" : "b"));
		for (int k = 0; k < 5; k++) {
			kymo_span_begin(n, sub, kymo_i32(k, k));
			spin(12 + exponential(12));
			kymo_span_begin(n, leaf);
			spin(10 + exponential(10));
			kymo_span_end(n, leaf);
			kymo_span_end(n, sub);
		}
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
