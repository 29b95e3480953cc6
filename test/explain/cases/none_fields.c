/* span: n:op expect: nothing */
#include "common.h"
static const char *const texts[] = {"x", "y", "z"};
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(n, op, kymo_i32(a, below(4)), kymo_i32(b, below(9)),
			kymo_i32(c, below(30)), kymo_i32(d, below(1000)), kymo_f64(e, normal()),
			kymo_bool(f, below(2)), kymo_string(g, texts[below(3)]),
			kymo_i32(h, below(64)), kymo_i32(j, below(3)));
		spin(70 * exponential(1) + 10);
		kymo_span_end(n, op, kymo_i32(k, below(12)), kymo_i32(l, below(100)));
		snooze(exponential(150));
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
