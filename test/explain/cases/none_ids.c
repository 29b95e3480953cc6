/* span: z:get expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 700; i++) {
		kymo_span_begin(z, get, kymo_i32(id, pick(1 << 24)),
			kymo_u32(hash, (unsigned)pick(1 << 30)), kymo_i32(mask, pick(1 << 16)));
		busy(40 - 45 * log(dice() + 1e-9));
		kymo_span_end(z, get, kymo_i32(rows, pick(500)));
		usleep(120);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
