/* span: wx:grid expect: nothing */
#include "common.h"
static void *other(void *x)
{
	for (int i = 0; i < 300; i++) {
		kymo_span_begin(wx, radar);
		spin(about(200));
		kymo_span_end(wx, radar);
		snooze(exponential(1000));
	}
	return x;
}
static void *work(void *x)
{
	if (x)
		return other(x);
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(wx, grid, kymo_i32(x, below(100)), kymo_i32(y, below(100)));
		spin(80 / pow(uniform() + 1e-9, .3));
		kymo_span_end(wx, grid);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
