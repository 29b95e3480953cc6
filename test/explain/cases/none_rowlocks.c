/* span: n:tx expect: nothing */
#include "clock.h"
static pthread_mutex_t m[64];
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, tx, kymo_i32(table, pick(6)), kymo_i32(rows, pick(200)));
		for (int k = 0; k < 3; k++) {
			pthread_mutex_t *r = &m[(intptr_t)x * 32 + pick(32)];
			pthread_mutex_lock(r);
			busy(15 - 20 * log(dice() + 1e-9));
			pthread_mutex_unlock(r);
		}
		kymo_span_end(n, tx);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 64; i++)
		pthread_mutex_init(&m[i], 0);
	start(t, 2, w);
	finish(t, 2);
}
