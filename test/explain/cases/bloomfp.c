/* span: lsm:lookup expect: sst:read */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(lsm, lookup, kymo_i32(key, pick(1 << 30)));
		busy(15);
		for (int n = pick(18) ? 1 : 9; n--;) {
			kymo_span_begin(sst, read);
			busy(45 + pick(15));
			kymo_span_end(sst, read);
			busy(3);
		}
		kymo_span_end(lsm, lookup);
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
