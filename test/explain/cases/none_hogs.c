/* span: n:tick expect: nothing */
#include "clock.h"
static int done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k < 2) {
		while (!__atomic_load_n(&done, 0)) {
			busy(3000 + 4000 * dice());
			usleep(2000 + (unsigned)pick(4000));
		}
		return x;
	}
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(n, tick, kymo_i32(a, pick(9)));
		for (volatile int j = 0; j < 40000; j++)
			;
		kymo_event(n, half, kymo_i32(b, pick(3)));
		for (volatile int j = 0; j < 40000; j++)
			;
		kymo_span_end(n, tick);
		usleep(300);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 4, work);
	finish(t, 4);
}
