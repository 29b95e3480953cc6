/* span: shop:quote expect: from \d */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	uint64_t t0 = clock_us();
	for (int i = 0; i < 900; i++) {
		uint64_t t = clock_us() - t0;
		kymo_span_begin(shop, quote, kymo_i32(item, pick(300)));
		busy(40 + pick(15));
		if (t > 120000 && t < 200000)
			usleep(1500);
		kymo_span_end(shop, quote);
		usleep(300);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
