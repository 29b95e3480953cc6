/* span: fj:run expect: (fj:task|waits for a condition) spans: fj:task */
#include "clock.h"
#define T 3
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, all = PTHREAD_COND_INITIALIZER;
static int gen, left, size[T], done;
static void *task(void *x)
{
	int seen = 0, k = (int)(intptr_t)x;
	for (;;) {
		pthread_mutex_lock(&m);
		while (gen == seen && !done)
			pthread_cond_wait(&go, &m);
		seen = gen;
		pthread_mutex_unlock(&m);
		if (done)
			return x;
		kymo_span_begin(fj, task, kymo_i32(size, size[k]));
		usleep((unsigned)size[k]);
		kymo_span_end(fj, task);
		pthread_mutex_lock(&m);
		if (!--left)
			pthread_cond_signal(&all);
		pthread_mutex_unlock(&m);
	}
}
int main(void)
{
	pthread_t t[T];
	start(t, T, task);
	usleep(5000);
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(fj, run);
		pthread_mutex_lock(&m);
		for (int k = 0; k < T; k++)
			size[k] = 100 + pick(50);
		if (!pick(18))
			size[pick(T)] = 4000;
		left = T;
		gen++;
		pthread_cond_broadcast(&go);
		while (left)
			pthread_cond_wait(&all, &m);
		pthread_mutex_unlock(&m);
		kymo_span_end(fj, run);
		usleep(100);
	}
	done = 1;
	pthread_cond_broadcast(&go);
	finish(t, T);
}
