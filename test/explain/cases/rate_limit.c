/* span: api:call expect: limiter:wait */
#include "common.h"
static void *work(void *x)
{
	double tokens = 20, last = now_us();
	for (int i = 0; i < 500; i++) {
		double t = now_us();
		tokens += (t - last) / 3000;
		last = t;
		if (tokens > 20)
			tokens = 20;
		kymo_span_begin(api, call, kymo_i32(n, below(5)));
		kymo_span_begin(limiter, take);
		if (tokens < 1) {
			kymo_span_begin(limiter, wait);
			snooze(8000);
			kymo_span_end(limiter, wait);
		} else
			tokens--;
		kymo_span_end(limiter, take);
		spin(about(70));
		kymo_span_end(api, call);
		snooze(chance(.97) ? 100 : 3000);
	}
	return x;
}
int main(void)
{
	run_threads(1, work);
}
