/* span: py:step expect: ext:call */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		kymo_span_begin(py, step, kymo_i32(op, pick(30)));
		pthread_mutex_lock(&m);
		busy(12);
		if (k == 2 && i % 70 == 30) {
			kymo_span_begin(ext, call);
			usleep(7000);
			kymo_span_end(ext, call);
		}
		pthread_mutex_unlock(&m);
		busy(15);
		kymo_span_end(py, step);
		usleep(350);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
