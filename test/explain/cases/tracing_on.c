/* span: dbg:step expect: (event dbg:trace comes|dbg:trace) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int loud = i > 300 && i < 330;
		kymo_span_begin(dbg, step, kymo_i32(i, below(100)));
		for (int k = 0; k < 10; k++) {
			spin(about(6));
			for (int l = 0; loud && l < 12; l++) {
				kymo_event(dbg, trace, kymo_i32(line, l));
				spin(about(4));
			}
		}
		kymo_span_end(dbg, step);
		snooze(400);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
