/*
 * span: sim:step
 * spans: (physics:collide|each 20th)
 * expect: (waits for a condition|physics:collide)
 */
#include "common.h"
#define N 4
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int arrived, round_;
static void meet(void)
{
	int mine;
	pthread_mutex_lock(&m);
	mine = round_;
	if (++arrived == N) {
		arrived = 0;
		round_++;
		pthread_cond_broadcast(&c);
	} else
		while (mine == round_)
			pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
}
static void *work(void *x)
{
	for (int i = 0; i < 250; i++) {
		kymo_span_begin(sim, step);
		spin(about(100));
		if ((intptr_t)x == 2 && i % 20 == 7) {
			kymo_span_begin(physics, collide);
			spin(4000);
			kymo_span_end(physics, collide);
		}
		meet();
		kymo_span_end(sim, step);
	}
	return x;
}
int main(void)
{
	run_threads(N, work);
}
