/* span: mm:alloc expect: (mm:compact|order) */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 900; i++) {
		int order = pick(18) ? pick(4) : 4 + pick(5);
		kymo_span_begin(mm, alloc, kymo_i32(order, order), kymo_i32(zone, pick(3)));
		busy(6 + pick(3));
		if (order >= 4) {
			kymo_span_begin(mm, slowpath);
			kymo_span_begin(mm, compact);
			busy(300 + pick(60));
			kymo_span_end(mm, compact);
			kymo_span_end(mm, slowpath);
		}
		kymo_span_end(mm, alloc);
		usleep(60);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
