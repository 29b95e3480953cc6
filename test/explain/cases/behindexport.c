/* span: req:total expect: (exp:csv|export|req:queued) */
#include "clock.h"
#define N 500
static int q[N + 1], head, tail;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void *worker(void *x)
{
	prctl(PR_SET_NAME, "worker");
	for (int i = 0; i < N; i++) {
		int id;
		pthread_mutex_lock(&m);
		while (head == tail)
			pthread_cond_wait(&c, &m);
		id = q[tail++];
		pthread_mutex_unlock(&m);
		kymo_async_end(req, queued, (uint64_t)id);
		if (id % 60 == 31) {
			kymo_span_begin(exp, csv);
			busy(7000);
			kymo_span_end(exp, csv);
		} else
			busy(120);
		kymo_async_end(req, total, (uint64_t)id);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, worker, 0);
	for (int i = 0; i < N; i++) {
		kymo_async_begin(req, total, (uint64_t)i, kymo_i32(user, pick(50)));
		kymo_async_begin(req, queued, (uint64_t)i);
		pthread_mutex_lock(&m);
		q[head++] = i;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
		usleep(600);
	}
	pthread_join(t, 0);
}
