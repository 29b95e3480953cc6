/* span: calc:price expect: memo:miss */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		int misses = chance(.05) ? 12 + below(5) : below(2);
		kymo_span_begin(calc, price, kymo_i32(sku, below(5000)));
		for (int k = 0; k < 16; k++) {
			spin(about(3));
			if (k < misses) {
				kymo_span_begin(memo, miss);
				spin(about(45));
				kymo_span_end(memo, miss);
			}
		}
		kymo_span_end(calc, price);
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
