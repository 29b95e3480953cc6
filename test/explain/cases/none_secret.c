/* span: api:call expect: nothing */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 600; i++) {
		double f = pick(20) ? 1 : 6;
		kymo_span_begin(api, call, kymo_i32(user, pick(400)),
			kymo_string(v, pick(2) ? "v1" : "v2"));
		for (int k = 0; k < 4; k++) {
			kymo_event(api, step, kymo_i32(k, k));
			busy(f * (20 + pick(8)));
		}
		kymo_span_end(api, call);
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
