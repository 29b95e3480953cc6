/* span: fn:invoke expect: cold = 1 */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 350; i++) {
		int cold = !pick(18);
		kymo_span_begin(
			fn, invoke, kymo_bool(cold, cold), kymo_i32(memory, 128 << pick(3)));
		kymo_span_begin(fn, setup);
		busy(cold ? 900 : 15);
		kymo_span_end(fn, setup);
		kymo_span_begin(fn, body);
		busy(60 + pick(30));
		kymo_span_end(fn, body);
		kymo_span_end(fn, invoke);
		usleep(300);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
