/* span: svc:first_use expect: svc:warmup */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready = 1, done;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	if (k == 0) {
		prctl(PR_SET_NAME, "warmer");
		while (!__atomic_load_n(&done, 0)) {
			usleep(40000);
			pthread_mutex_lock(&m);
			ready = 0;
			pthread_mutex_unlock(&m);
			kymo_span_begin(svc, warmup);
			usleep(4000);
			kymo_span_end(svc, warmup);
			pthread_mutex_lock(&m);
			ready = 1;
			pthread_cond_broadcast(&c);
			pthread_mutex_unlock(&m);
		}
		return x;
	}
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(svc, first_use, kymo_i32(caller, pick(30)));
		pthread_mutex_lock(&m);
		while (!ready)
			pthread_cond_wait(&c, &m);
		pthread_mutex_unlock(&m);
		busy(40 + pick(20));
		kymo_span_end(svc, first_use);
		usleep(500);
	}
	__atomic_store_n(&done, 1, 0);
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 3, work);
	finish(t, 3);
}
