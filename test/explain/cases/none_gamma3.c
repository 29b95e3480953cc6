/* span: n:outer expect: nothing */
#include "clock.h"
static double g(void)
{
	return -20 * (log(dice() + 1e-9) + log(dice() + 1e-9) + log(dice() + 1e-9));
}
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, outer, kymo_i32(k, pick(30)));
		kymo_span_begin(n, a);
		busy(g());
		kymo_span_end(n, a);
		kymo_span_begin(n, b);
		busy(g());
		kymo_span_end(n, b);
		kymo_span_begin(n, c);
		busy(g());
		kymo_span_end(n, c);
		kymo_span_end(n, outer);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
