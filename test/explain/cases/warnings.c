/* span: rule:eval expect: log:warn */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 700; i++) {
		int n = pick(16) ? pick(2) : 30 + pick(20);
		kymo_span_begin(rule, eval, kymo_i32(id, pick(3000)));
		busy(40 + pick(10));
		for (int k = 0; k < n; k++) {
			kymo_event(log, warn, kymo_i32(line, pick(900)));
			busy(25);
		}
		kymo_span_end(rule, eval);
		usleep(80);
	}
}
