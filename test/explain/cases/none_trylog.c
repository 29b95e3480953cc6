/* span: z:op expect: nothing */
#include "clock.h"
static pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		double z = 0;
		for (int j = 0; j < 12; j++)
			z += dice();
		kymo_span_begin(z, op, kymo_i32(a, pick(40)));
		if (!pthread_mutex_trylock(&m[k])) {
			busy(60 * exp(.4 * (z - 6)));
			pthread_mutex_unlock(&m[k]);
		}
		kymo_span_end(z, op);
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
