/* span: ws:sync expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		double k = chance(.04) ? 6 : 1; /* all parts alike: a slow machine */
		kymo_span_begin(ws, sync, kymo_i32(doc, below(900)));
		spin(about(20 * k));
		kymo_span_begin(ws, diff);
		spin(about(50 * k));
		kymo_span_end(ws, diff);
		kymo_span_begin(ws, send);
		spin(about(40 * k));
		kymo_span_end(ws, send);
		kymo_span_end(ws, sync);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
