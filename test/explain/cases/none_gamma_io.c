/* span: z:disk expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 300; i++) {
		kymo_span_begin(z, disk, kymo_i32(sector, pick(1 << 20)));
		kymo_span_begin(z, seek);
		usleep((unsigned)(60 - 40 * (log(dice() + 1e-9) + log(dice() + 1e-9))));
		kymo_span_end(z, seek);
		kymo_span_begin(z, xfer);
		usleep((unsigned)(60 - 40 * (log(dice() + 1e-9) + log(dice() + 1e-9))));
		kymo_span_end(z, xfer);
		kymo_span_end(z, disk);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
