/* span: n:op expect: nothing */
#include "common.h"
static double body(void);
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, op, kymo_i32(size, below(1000)),
			kymo_string(kind, below(3)   ? "a"
					  : below(2) ? "b"
						     : "c"));
		spin(body() * 40);
		kymo_span_begin(n, part);
		spin(body() * 60);
		kymo_span_end(n, part, kymo_i32(code, below(4)));
		spin(body() * 20);
		kymo_span_end(n, op, kymo_bool(ok, chance(.9)));
		snooze(exponential(200));
	}
	return x;
}
static double body(void)
{
	return .3 + uniform();
}
int main(void)
{
	run_threads(2, work);
}
