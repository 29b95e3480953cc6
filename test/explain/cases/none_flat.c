/* span: z:run expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 200; i++) {
		kymo_span_begin(
			z, run, kymo_i32(job, pick(300)), kymo_string(q, pick(2) ? "lo" : "hi"));
		busy(40 + 80 * dice());
		kymo_span_end(z, run);
		usleep(700);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 5, work);
	finish(t, 5);
}
