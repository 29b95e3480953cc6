/* span: n:op expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		int slow = chance(.05);
		kymo_span_begin(n, op, kymo_i32(a, below(7)), kymo_i32(b, below(40)),
			kymo_i32(c, below(5000)));
		spin(about(slow ? 800 : 90));
		kymo_span_end(n, op, kymo_i32(d, below(5)));
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
