/* span: n:op expect: nothing */
#include "common.h"
static void part(double us)
{
	double t = about(us);
	spin(t);
	if (chance(t / 4000)) /* stalls anywhere, in proportion to time */
		snooze(exponential(2500));
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, op, kymo_i32(size, below(1000)));
		part(40);
		kymo_span_begin(n, one);
		part(60);
		kymo_span_end(n, one);
		kymo_span_begin(n, two);
		part(30);
		kymo_span_end(n, two);
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
