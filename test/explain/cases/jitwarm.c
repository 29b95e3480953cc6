/* span: lambda:invoke expect: first \d+ */
#include "clock.h"
static void *w(void *x)
{
	usleep(40000u * (unsigned)(intptr_t)x);
	for (int i = 0; i < 300; i++) {
		kymo_span_begin(lambda, invoke, kymo_i32(payload, pick(1000)));
		busy(50 + pick(20) + (i < 15 ? 700 : 0));
		kymo_span_end(lambda, invoke);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[4];
	start(t, 4, w);
	finish(t, 4);
}
