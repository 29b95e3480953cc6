/* span: tele:push expect: each 25th of the (thread|trace) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 1; i <= 700; i++) {
		kymo_span_begin(tele, push);
		spin(about(22));
		if (i % 25 == 0)
			snooze(1100);
		kymo_span_end(tele, push);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
