/* span: idx:write expect: idx:scan */
#include "clock.h"
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k == 0) {
		for (int i = 0; i < 700; i++) {
			kymo_span_begin(idx, write, kymo_i32(doc, pick(9000)));
			pthread_rwlock_wrlock(&l);
			busy(20);
			pthread_rwlock_unlock(&l);
			kymo_span_end(idx, write);
			usleep(400);
		}
		__atomic_store_n(&done, 1, 0);
		return x;
	}
	while (!__atomic_load_n(&done, 0)) {
		pthread_rwlock_rdlock(&l);
		if (k == 2 && !pick(40)) {
			kymo_span_begin(idx, scan);
			usleep(5000);
			kymo_span_end(idx, scan);
		} else
			busy(15);
		pthread_rwlock_unlock(&l);
		usleep(900);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
