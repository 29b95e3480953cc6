/* span: app:open expect: plan = "trial" */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int trial = chance(.42);
		kymo_span_begin(app, open,
			kymo_string(plan, trial	     ? "trial"
					  : below(2) ? "pro"
						     : "team"),
			kymo_i32(seats, 1 + below(50)));
		spin(about(50));
		kymo_span_begin(lic, check);
		spin(about(trial ? 330 : 40));
		kymo_span_end(lic, check);
		kymo_span_end(app, open);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
