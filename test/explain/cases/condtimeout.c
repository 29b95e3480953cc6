/* span: job:fetch expect: (job:fetch|cond|timeouts|job:wait) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
int main(void)
{
	spin(1);
	for (int i = 0; i < 700; i++) {
		kymo_span_begin(job, fetch);
		spin(about(40));
		kymo_span_begin(job, wait);
		if (chance(.05)) {
			struct timespec t;
			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_nsec += 3000000;
			t.tv_sec += t.tv_nsec / 1000000000;
			t.tv_nsec %= 1000000000;
			pthread_mutex_lock(&m);
			pthread_cond_timedwait(&c, &m, &t);
			pthread_mutex_unlock(&m);
		}
		spin(about(20));
		kymo_span_end(job, wait);
		kymo_span_end(job, fetch);
		snooze(300);
	}
}
