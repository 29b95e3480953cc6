/* span: rq:reply expect: (rq:wait|condition|mutex_lock|cond) */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, stop;
static void *peer(void *x)
{
	name_thread("peer");
	while (!stop) {
		snooze(50);
		pthread_mutex_lock(&m);
		if (ready == 1 && !chance(.05)) {
			ready = 2;
			pthread_cond_signal(&c);
		} else if (ready == 1) {
			ready = 3;
		}
		pthread_mutex_unlock(&m);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, 0, peer, 0);
	for (int i = 0; i < 500; i++) {
		struct timespec until;
		kymo_span_begin(rq, reply);
		spin(about(30));
		kymo_span_begin(rq, wait);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 4000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&m);
		ready = 1;
		while (ready != 2 && !pthread_cond_timedwait(&c, &m, &until))
			;
		ready = 0;
		pthread_mutex_unlock(&m);
		kymo_span_end(rq, wait);
		kymo_span_end(rq, reply);
		snooze(300);
	}
	stop = 1;
	pthread_join(t, 0);
}
