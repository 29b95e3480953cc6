/* span: n:fetch expect: nothing */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 400; i++) {
		double z = 0;
		for (int k = 0; k < 12; k++)
			z += dice();
		kymo_span_begin(n, fetch, kymo_string(url, pick(2) ? "/x" : "/y"),
			kymo_i32(len, pick(9000)));
		busy(20);
		usleep((unsigned)(150 * exp(.5 * (z - 6))));
		busy(20);
		kymo_span_end(n, fetch);
	}
	return x;
}
int main(void)
{
	pthread_t t[3];
	start(t, 3, w);
	finish(t, 3);
}
