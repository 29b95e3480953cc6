/* span: n:put expect: nothing */
#include "clock.h"
static pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, put, kymo_i32(key, pick(1000)));
		for (int j = 0; j < 2; j++) {
			char *q = malloc(64u + (unsigned)pick(64));
			pthread_mutex_lock(&m[k]);
			busy(20 - 25 * log(dice() + 1e-9));
			pthread_mutex_unlock(&m[k]);
			free(q);
		}
		kymo_span_end(n, put);
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
