/* span: db:tx expect: nothing */
#include "clock.h"
static pthread_mutex_t m[32];
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		double g = 0;
		for (int k = 0; k < 3; k++)
			g -= 30 * log(dice() + 1e-9);
		kymo_span_begin(db, tx, kymo_i32(rows, pick(100)));
		pthread_mutex_lock(&m[(intptr_t)x * 8]);
		pthread_mutex_unlock(&m[(intptr_t)x * 8]);
		busy(40 + g);
		kymo_span_end(db, tx);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 32; i++) {
		pthread_mutexattr_t a;
		pthread_mutexattr_init(&a);
		pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
		pthread_mutex_init(&m[i], &a);
	}
	start(t, 2, w);
	finish(t, 2);
}
