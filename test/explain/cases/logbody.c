/* span: geo:route expect: (tile:load|geo:snap) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(geo, route);
		spin(60 * exp(.5 * normal()));
		kymo_span_begin(geo, snap);
		spin(40 * exp(.5 * normal()));
		kymo_span_end(geo, snap);
		if (chance(.05)) {
			kymo_span_begin(tile, load);
			spin(700 * exp(.3 * normal()));
			kymo_span_end(tile, load);
		}
		kymo_span_end(geo, route);
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
