/* span: geo:route expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(geo, route, kymo_i32(from, below(400)), kymo_i32(to, below(400)),
			kymo_string(mode, below(3) ? "car" : "bike"));
		kymo_span_begin(geo, snap);
		spin(about(25));
		kymo_span_end(geo, snap);
		kymo_span_begin(geo, search);
		spin(60 * exp(.5 * normal()));
		kymo_span_end(geo, search);
		kymo_span_begin(geo, encode);
		spin(about(15));
		kymo_span_end(geo, encode);
		kymo_span_end(geo, route);
		snooze(exponential(500));
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
