/* span: n:calc expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		double f = pick(16) ? 1 : 4 + dice();
		kymo_span_begin(n, calc, kymo_i32(id, pick(900)), kymo_i32(kind, pick(4)));
		kymo_span_begin(n, pre);
		busy(f * (15 + pick(4)));
		kymo_span_end(n, pre);
		busy(f * (25 + pick(8)));
		kymo_span_begin(n, post);
		busy(f * (20 + pick(6)));
		kymo_span_end(n, post);
		kymo_span_end(n, calc);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
