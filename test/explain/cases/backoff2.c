/* span: http:call expect: (http:try|http:backoff|http:reset) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(http, call, kymo_string(method, below(2) ? "GET" : "PUT"));
		for (int try = 0;; try++) {
			kymo_span_begin(http, try, kymo_i32(n, try));
			spin(about(70));
			kymo_span_end(http, try);
			if (!chance(try ? .6 : .05) || try == 5)
				break;
			kymo_event(http, reset, kymo_i32(err, 104));
			snooze(300 << try);
		}
		kymo_span_end(http, call);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
