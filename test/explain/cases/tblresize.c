/* span: tbl:put expect: tbl:resize */
#include "clock.h"
static pthread_spinlock_t l;
static int done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k) {
		prctl(PR_SET_NAME, "resizer");
		while (!__atomic_load_n(&done, 0)) {
			usleep(40000);
			pthread_spin_lock(&l);
			kymo_span_begin(tbl, resize);
			busy(2000);
			kymo_span_end(tbl, resize);
			pthread_spin_unlock(&l);
		}
		return x;
	}
	for (int i = 0; i < 2500; i++) {
		kymo_span_begin(tbl, put, kymo_i32(key, pick(9999)));
		pthread_spin_lock(&l);
		busy(12);
		pthread_spin_unlock(&l);
		kymo_span_end(tbl, put);
		usleep(150);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];
	pthread_spin_init(&l, 0);
	start(t, 2, work);
	finish(t, 2);
}
