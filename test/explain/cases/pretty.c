/* span: json:dump expect: pretty */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		const char *f = pick(18) ? pick(2) ? "compact" : "min" : "pretty";
		kymo_span_begin(json, dump, kymo_string(format, f), kymo_i32(keys, pick(40)));
		kymo_span_begin(json, walk);
		busy(40 + pick(20) + (f[0] == 'p' ? 500 : 0));
		kymo_span_end(json, walk);
		kymo_span_end(json, dump);
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
