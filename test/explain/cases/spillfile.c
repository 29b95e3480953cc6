/* span: agg:add expect: agg:spill */
#include "common.h"
static void *work(void *x)
{
	int used = 0;
	for (int i = 0; i < 1200; i++) {
		int len = 1 + below(400);
		kymo_span_begin(agg, add, kymo_i32(len, len));
		spin(about(20));
		used += len;
		if (used > 4096) {
			used = 0;
			kymo_span_begin(agg, spill);
			spin(about(800));
			kymo_span_end(agg, spill);
		}
		kymo_span_end(agg, add);
		snooze(150);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
