/* span: n:io expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 400; i++) {
		kymo_span_begin(n, io, kymo_i32(dev, pick(3)));
		for (int j = 0; j < 2; j++) {
			if (j)
				kymo_span_begin(n, wr);
			else
				kymo_span_begin(n, rd);
			usleep((unsigned)(80 - 60 * log(dice() + 1e-9)));
			if (j)
				kymo_span_end(n, wr);
			else
				kymo_span_end(n, rd);
		}
		kymo_span_end(n, io);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
