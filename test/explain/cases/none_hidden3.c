/* span: hd:seek expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		double stall = chance(.05) ? 1200 : 0;
		kymo_span_begin(hd, seek, kymo_i32(track, below(5000)));
		/* The same number of stalls in both halves. */
		spin(about(50) + (uniform() < .5 ? stall : 0));
		kymo_event(hd, arm, kymo_i32(head, below(4)));
		spin(about(50) + (uniform() < .5 ? stall : 0));
		kymo_span_end(hd, seek);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
