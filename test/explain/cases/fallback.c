/* span: stat:inc expect: slow:path */
#include "clock.h"
static pthread_mutex_t m[3] = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		kymo_span_begin(stat, inc, kymo_i32(slot, pick(16)));
		busy(20);
		if (pick(24) && !pthread_mutex_trylock(&m[k])) {
			busy(3);
			pthread_mutex_unlock(&m[k]);
		} else {
			kymo_span_begin(slow, path);
			usleep(1100);
			kymo_span_end(slow, path);
		}
		kymo_span_end(stat, inc);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
