/* span: srv:req expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		kymo_span_begin(srv, req, kymo_i32(user, below(300)));
		kymo_span_begin(srv, auth);
		spin(about(30));
		kymo_span_end(srv, auth);
		kymo_span_begin(srv, body);
		spin(about(90) * exp(.4 * normal()));
		kymo_span_end(srv, body);
		kymo_span_end(srv, req);
		snooze(exponential(1500));
	}
	return x;
}
int main(void)
{
	run_threads(8, work);
}
