/* span: job:take expect: job:timeout */
#include "clock.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, done, lost;
static void *producer(void *x)
{
	prctl(PR_SET_NAME, "producer");
	while (!__atomic_load_n(&done, 0)) {
		usleep(300);
		pthread_mutex_lock(&m);
		ready++;
		pthread_mutex_unlock(&m);
		if (dice() > .05) /* one wake-up in twenty is lost */
			pthread_cond_signal(&c);
		else
			lost++;
	}
	return x;
}
int main(void)
{
	pthread_t p;
	pthread_create(&p, 0, producer, 0);
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(job, take);
		pthread_mutex_lock(&m);
		ready = 0;
		while (!ready) {
			struct timespec t;
			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_nsec += 8000000;
			if (t.tv_nsec >= 1000000000)
				t.tv_sec++, t.tv_nsec -= 1000000000;
			__atomic_store_n(&lost, 0, 0);
			if (pthread_cond_timedwait(&c, &m, &t) == ETIMEDOUT)
				kymo_event(job, timeout, kymo_i32(ready, ready));
			if (__atomic_load_n(&lost, 0)) {
				/* asleep until the timeout: nobody signals */
				pthread_mutex_unlock(&m);
				usleep(8000);
				kymo_event(job, timeout, kymo_i32(ready, ready));
				pthread_mutex_lock(&m);
			}
		}
		ready--;
		pthread_mutex_unlock(&m);
		busy(30);
		kymo_span_end(job, take);
	}
	__atomic_store_n(&done, 1, 0);
	pthread_join(p, 0);
}
