/* span: n:job expect: nothing */
#include "common.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int head, tail;
static void *worker(void *x)
{
	for (;;) {
		int k;
		pthread_mutex_lock(&m);
		while (head == tail && tail < 1200)
			pthread_cond_wait(&c, &m);
		k = head < tail ? head++ : -1;
		pthread_mutex_unlock(&m);
		if (k < 0)
			return x;
		kymo_span_begin(n, job, kymo_i32(k, k), kymo_string(t, k % 3 ? "a" : "b"));
		spin(80 * exp(.6 * normal()));
		kymo_span_begin(n, sub);
		spin(80 * exp(.6 * normal()));
		kymo_span_end(n, sub);
		kymo_span_end(n, job);
	}
}
static void *feed(void *x)
{
	while (tail < 1200) {
		pthread_mutex_lock(&m);
		tail++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
		snooze(exponential(300));
	}
	return x;
}
static void *any(void *x)
{
	return x ? worker(x) : feed(x);
}
int main(void)
{
	run_threads(4, any);
}
