/* span: n:op expect: nothing */
#include "common.h"
static double body(void)
{
	return pow(-log(uniform() + 1e-9), 1.4);
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		double t = body();
		kymo_span_begin(n, op, kymo_i32(z, below(40)));
		kymo_span_begin(n, one);
		spin(40 * t);
		kymo_span_end(n, one);
		kymo_span_begin(n, two);
		spin(30 * t);
		kymo_span_end(n, two);
		kymo_span_begin(n, three);
		spin(50 * t);
		kymo_span_end(n, three);
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
