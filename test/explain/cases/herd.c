/* span: herd:serve expect: waits for (mutex|a condition) spans: . */
#include "clock.h"
#define N 10
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int gen, done;
static void *serve(void *x)
{
	int seen = 0;
	for (;;) {
		pthread_mutex_lock(&m);
		while (gen == seen && !done)
			pthread_cond_wait(&c, &m);
		seen = gen;
		pthread_mutex_unlock(&m);
		if (done)
			return x;
		kymo_span_begin(herd, serve);
		busy(20);
		pthread_mutex_lock(&m);
		busy(90);
		pthread_mutex_unlock(&m);
		kymo_span_end(herd, serve);
	}
}
int main(void)
{
	pthread_t t[N];
	start(t, N, serve);
	for (int i = 0; i < 120; i++) {
		usleep(5000);
		pthread_mutex_lock(&m);
		gen++;
		if (i % 8 == 0)
			pthread_cond_broadcast(&c);
		else
			pthread_cond_signal(&c), pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	done = 1;
	pthread_cond_broadcast(&c);
	finish(t, N);
}
