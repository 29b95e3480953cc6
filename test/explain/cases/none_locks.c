/* span: n:op expect: nothing */
#include "common.h"
static pthread_mutex_t m[16];
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		pthread_mutex_t *l = &m[(intptr_t)x];
		double t = exp(.9 * normal());
		kymo_span_begin(n, op, kymo_string(user, below(2) ? "x" : "y"));
		spin(40 * t);
		pthread_mutex_lock(l);
		free(malloc(100));
		spin(30 * t);
		pthread_mutex_unlock(l);
		kymo_span_end(n, op);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	for (int i = 0; i < 16; i++)
		pthread_mutex_init(&m[i], NULL);
	run_threads(3, work);
}
