/* span: n:op expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, op, kymo_i32(i, i), kymo_i32(kind, below(3)));
		snooze(100 + exponential(100));
		spin(about(30));
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(5, work);
}
