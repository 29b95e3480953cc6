/* span: obj:copy expect: lock spans: nothing */
#include "clock.h"
static pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static long refs[2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 350; i++) {
		int n = pick(17) ? 4 : 2500;
		kymo_span_begin(obj, copy, kymo_i32(cls, pick(60)));
		busy(30 + pick(10));
		for (int j = 0; j < n; j++) {
			pthread_mutex_lock(&m[k]);
			refs[k]++;
			pthread_mutex_unlock(&m[k]);
		}
		kymo_span_end(obj, copy);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
