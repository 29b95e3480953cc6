/* span: job:low expect: job:high */
#include "clock.h"
#define N 500
static struct {
	uint64_t id;
	int high;
} high[N], low[N];
static int nh, nl, gh, gl, done;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void *worker(void *x)
{
	prctl(PR_SET_NAME, "worker");
	for (;;) {
		int is_high, k;
		pthread_mutex_lock(&m);
		while (gh == nh && gl == nl && !done)
			pthread_cond_wait(&c, &m);
		if (gh == nh && gl == nl)
			break;
		is_high = gh < nh;
		k = is_high ? gh++ : gl++;
		pthread_mutex_unlock(&m);
		if (is_high) {
			kymo_span_begin(job, high);
			busy(1200);
			kymo_span_end(job, high);
		} else {
			busy(80);
			kymo_async_end(job, low, low[k].id);
		}
	}
	pthread_mutex_unlock(&m);
	return x;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, worker, 0);
	for (int i = 0; i < N; i++) {
		low[nl].id = 7000u + (unsigned)i;
		kymo_async_begin(job, low, low[nl].id, kymo_i32(owner, pick(20)));
		pthread_mutex_lock(&m);
		nl++;
		if (i % 45 == 20)
			nh += 4;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
		usleep(700);
	}
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
}
