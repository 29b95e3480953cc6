/* span: enc:frame expect: cpu:temp */
#include "clock.h"
static int hot, done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k) {
		while (!__atomic_load_n(&done, 0)) {
			int h = !pick(11);
			__atomic_store_n(&hot, h, 0);
			kymo_counter_f64(cpu, temp, h ? 91 + 3 * dice() : 60 + 20 * dice());
			usleep(6000);
		}
		return x;
	}
	usleep(500);
	for (int i = 0; i < 2000; i++) {
		kymo_span_begin(enc, frame, kymo_i32(qp, pick(51)));
		busy(60 + pick(20) + (__atomic_load_n(&hot, 0) ? 500 : 0));
		kymo_span_end(enc, frame);
		usleep(200);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
