/* span: idx:refresh expect: mode */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 400; i++) {
		int full = pick(10) < 3;
		kymo_span_begin(idx, refresh, kymo_string(mode, full ? "full" : "delta"),
			kymo_i32(shard, pick(16)));
		busy(40 + pick(20) + (full ? 300 + pick(80) : 0));
		kymo_span_end(idx, refresh);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
