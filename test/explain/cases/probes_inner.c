/* span: ht:find expect: (grows with probes|probes of ht:chain ≥) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		int n = 1 + (int)exponential(20);
		kymo_span_begin(ht, find);
		spin(about(20));
		kymo_event(ht, chain, kymo_i32(probes, n));
		spin(about(10) + 7.0 * n);
		kymo_span_end(ht, find);
		snooze(100);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
