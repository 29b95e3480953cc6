/* span: ad:rank expect: market = "jp" */
#include "common.h"
static void *work(void *x)
{
	static const char *const markets[] = {"us", "de", "fr", "uk", "in", "br", "jp", "mx"};
	for (int i = 0; i < 900; i++) {
		int k = below(8);
		kymo_span_begin(
			ad, rank, kymo_string(market, markets[k]), kymo_i32(slots, 1 + below(4)));
		spin(about(90));
		spin(about(k == 6 ? 120 : 20));
		kymo_span_end(ad, rank);
		snooze(exponential(150));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
