/* span: ph:dial expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(
			ph, dial, kymo_i32(digits, 3 + below(9)), kymo_i32(line, below(40)));
		spin(exponential(40) + exponential(40));
		kymo_event(ph, ring, kymo_i32(n, below(4)));
		spin(exponential(40));
		kymo_span_end(ph, dial, kymo_i32(ok, !!below(20)));
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
