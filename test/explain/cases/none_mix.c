/* span: z:two expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		double f = pick(2) ? 1 : 3;
		kymo_span_begin(z, two, kymo_i32(id, pick(5000)), kymo_i32(b, pick(6)));
		busy(f * (30 + pick(8)));
		kymo_event(z, mid, kymo_i32(c, pick(9)));
		busy(f * (30 + pick(8)));
		kymo_span_end(z, two);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
