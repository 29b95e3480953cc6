/* span: api:list expect: limit:wait */
#include "clock.h"
int main(void)
{
	double tokens = 5, last = (double)clock_us();
	for (int i = 0; i < 900; i++) {
		double t = (double)clock_us();
		tokens += (t - last) / 450;
		tokens = tokens > 12 ? 12 : tokens;
		last = t;
		kymo_span_begin(api, list, kymo_i32(page, pick(30)));
		busy(30 + pick(10));
		if (tokens < 1) {
			kymo_span_begin(limit, wait);
			usleep(4000);
			kymo_span_end(limit, wait);
		} else
			tokens--;
		kymo_span_end(api, list);
		usleep(250);
	}
}
