/* span: codec:encode expect: first \d+ */
#include "clock.h"
static void *w(void *x)
{
	usleep(30000u * (unsigned)(intptr_t)x);
	for (int i = 0; i < 220; i++) {
		kymo_span_begin(codec, encode, kymo_i32(frame, pick(100000)));
		busy(40 + pick(20));
		if (i < 8)
			usleep(1200);
		kymo_span_end(codec, encode);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[5];
	start(t, 5, w);
	finish(t, 5);
}
