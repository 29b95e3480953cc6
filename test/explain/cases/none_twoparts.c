/* span: n:both expect: nothing */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		double f = pick(20) ? 1 : 5;
		kymo_span_begin(n, both, kymo_i32(id, pick(900)));
		kymo_span_begin(n, first);
		busy(f * (40 + pick(12)));
		kymo_span_end(n, first);
		kymo_span_begin(n, second);
		busy(f * (40 + pick(12)));
		kymo_span_end(n, second);
		kymo_span_end(n, both);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
