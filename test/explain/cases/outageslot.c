/* span: dc:ping expect: (between|stretch|from .* to|trace) */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(dc, ping, kymo_i32(peer, pick(20)));
		busy(40 + pick(20));
		if (i > 400 && i < 460)
			usleep(1500);
		kymo_span_end(dc, ping);
		usleep(200);
	}
	return x;
}
int main(void)
{
	w(0);
}
