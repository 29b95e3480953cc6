/* span: out:write expect: (out:flush|pending ≥|grows with pending) */
#include "common.h"
static void *work(void *x)
{
	int pending = below(3000);
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(out, write, kymo_i32(pending, pending));
		spin(about(18));
		pending += 80 + below(80);
		if (pending >= 4096) {
			spin(about(650));
			pending = 0;
		}
		kymo_span_end(out, write);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
