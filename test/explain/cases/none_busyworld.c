/* span: z:calc expect: nothing */
#include "clock.h"
static int done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k) {
		while (!__atomic_load_n(&done, 0)) {
			kymo_counter(z, level, pick(100));
			kymo_event(z, note, kymo_i32(x, pick(5)));
			kymo_span_begin(z, beat);
			busy(20);
			kymo_span_end(z, beat);
			usleep(1000 + (unsigned)pick(9000));
		}
		return x;
	}
	for (int i = 0; i < 1200; i++) {
		double z = 0;
		for (int j = 0; j < 12; j++)
			z += dice();
		kymo_span_begin(z, calc, kymo_i32(user, pick(100000)), kymo_i32(flags, pick(4096)));
		busy(55 * exp(.4 * (z - 6)));
		kymo_span_end(z, calc);
		usleep(150);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
