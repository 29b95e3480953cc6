/* span: req:done expect: heap:trim */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		kymo_span_begin(req, done, kymo_i32(id, pick(9999)));
		busy(40 + pick(10));
		if (!pick(25)) {
			kymo_span_begin(heap, trim, kymo_i32(arena, k));
			busy(1100);
			kymo_span_end(heap, trim);
		}
		kymo_span_end(req, done);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
