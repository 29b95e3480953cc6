/* span: sim:wait expect: (sim:force|each 18th) */
#include "common.h"
static pthread_barrier_t b;
static void *work(void *x)
{
	for (int i = 0; i < 260; i++) {
		kymo_span_begin(sim, force, kymo_i32(cells, below(90)));
		spin(about(90));
		if (x == (void *)1 && i % 18 == 3)
			snooze(3500);
		kymo_span_end(sim, force);
		kymo_span_begin(sim, wait);
		pthread_barrier_wait(&b);
		kymo_span_end(sim, wait);
	}
	return x;
}
int main(void)
{
	pthread_barrier_init(&b, NULL, 3);
	run_threads(3, work);
}
