/* span: pool:task expect: kind = "resize" */
#include "common.h"
#define N 1600
static struct {
	int kind;
} q[N];
static int head, tail;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static const char *const kinds[] = {"crop", "rotate", "resize", "blur", "flip", "tag", "store"};
static void *worker(void *x)
{
	name_thread("pool-worker");
	for (;;) {
		int k;
		pthread_mutex_lock(&m);
		while (head == tail)
			pthread_cond_wait(&c, &m);
		k = q[head].kind;
		if (k >= 0)
			head++;
		pthread_mutex_unlock(&m);
		if (k < 0)
			return x;
		kymo_span_begin(
			pool, task, kymo_string(kind, kinds[k]), kymo_i32(job, below(100000)));
		spin(about(k == 2 ? 900 : 120));
		free(malloc(300));
		kymo_span_end(pool, task);
	}
}
int main(void)
{
	pthread_t t[3];
	spin(1);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, worker, 0);
	for (int i = 0; i < N; i++) {
		pthread_mutex_lock(&m);
		q[tail].kind = i == N - 1    ? -1
			       : chance(.05) ? 2
					     : (int[]){0, 1, 3, 4, 5, 6}[below(6)];
		tail++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
		snooze(250);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
}
