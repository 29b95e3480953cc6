/* span: search:query expect: (tenant = .?7|docs) */
#include "clock.h"
int main(void)
{
	int docs[12] = {10, 14, 8, 12, 9, 15, 11, 190, 13, 10, 12, 7};
	for (int i = 0; i < 900; i++) {
		int t = pick(12);
		kymo_span_begin(search, query, kymo_i32(tenant, t), kymo_i32(limit, 10 + pick(40)),
			kymo_string(lang, pick(2) ? "en" : "de"));
		kymo_span_begin(search, score);
		busy(5 * docs[t] + pick(20));
		kymo_span_end(search, score);
		kymo_span_end(search, query);
		usleep(80);
	}
}
