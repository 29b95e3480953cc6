/* span: step:sync spans: (step:compute|each 20th) expect: (step:compute|condition) */
#include "common.h"
#define T 4
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, phase;
static void sync_all(void)
{
	int at;
	kymo_span_begin(step, sync);
	pthread_mutex_lock(&m);
	at = phase;
	if (++waiting == T) {
		waiting = 0;
		phase++;
		pthread_cond_broadcast(&c);
	}
	while (at == phase)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	kymo_span_end(step, sync);
}
static void *work(void *x)
{
	name_thread(x ? "solver" : "solver-0");
	for (int i = 0; i < 300; i++) {
		kymo_span_begin(step, compute);
		spin(about(100));
		if (!x && i % 20 == 7)
			snooze(4000);
		kymo_span_end(step, compute);
		sync_all();
	}
	return x;
}
int main(void)
{
	run_threads(T, work);
}
