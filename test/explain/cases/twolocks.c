/* span: ses:touch expect: (?=.*gc:mark)(?=.*stat:dump) spans: stat:dump */
#include "clock.h"
static pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k < 2) {
		while (!__atomic_load_n(&done, 0)) {
			usleep(k ? 37000 : 29000);
			pthread_mutex_lock(&m[k]);
			if (k)
				kymo_span_begin(gc, mark);
			else
				kymo_span_begin(stat, dump);
			usleep(3500);
			if (k)
				kymo_span_end(gc, mark);
			else
				kymo_span_end(stat, dump);
			pthread_mutex_unlock(&m[k]);
		}
		return x;
	}
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(ses, touch, kymo_i32(sid, pick(900)));
		for (int j = 0; j < 2; j++) {
			pthread_mutex_lock(&m[j]);
			busy(8);
			pthread_mutex_unlock(&m[j]);
		}
		busy(20);
		kymo_span_end(ses, touch);
		usleep(400);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 4, work);
	finish(t, 4);
}
