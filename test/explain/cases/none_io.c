/* span: io:read expect: nothing */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(io, read, kymo_i32(block, pick(1 << 20)), kymo_i32(dev, pick(3)));
		usleep((unsigned)(100 - 150 * log(dice() + 1e-9)));
		kymo_span_end(io, read);
	}
	return x;
}
int main(void)
{
	pthread_t t[3];
	start(t, 3, w);
	finish(t, 3);
}
