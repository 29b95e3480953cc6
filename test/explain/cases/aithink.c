/* span: frame:sync expect: ai:think */
#include "clock.h"
static pthread_barrier_t b;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 300; i++) {
		if (k == 1) {
			kymo_span_begin(ai, think);
			usleep(pick(16) ? 200 : 5000);
			kymo_span_end(ai, think);
		} else {
			kymo_span_begin(phys, step);
			usleep(250);
			kymo_span_end(phys, step);
		}
		kymo_span_begin(frame, sync);
		pthread_barrier_wait(&b);
		kymo_span_end(frame, sync);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	pthread_barrier_init(&b, 0, 3);
	start(t, 3, work);
	finish(t, 3);
}
