/* span: msg:route expect: code */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		int code = pick(14) ? pick(7) : pick(2) ? 7 : 9;
		kymo_span_begin(msg, route, kymo_i32(code, code), kymo_i32(hops, pick(4)));
		busy(40 + pick(12) + (code >= 7 ? 450 + pick(100) : 0));
		kymo_span_end(msg, route);
		usleep(120);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
