/* span: mpi:barrier expect: (rank-2|halo:exchange) */
#include "clock.h"
static pthread_barrier_t b;
static void *rank(void *x)
{
	char n[16];
	snprintf(n, sizeof(n), "rank-%d", (int)(intptr_t)x);
	prctl(PR_SET_NAME, n);
	for (int i = 0; i < 300; i++) {
		kymo_span_begin(mpi, compute);
		usleep(300);
		kymo_span_end(mpi, compute);
		if (x == (void *)2 && i % 17 == 4) {
			kymo_span_begin(halo, exchange);
			usleep(4000);
			kymo_span_end(halo, exchange);
		}
		kymo_span_begin(mpi, barrier);
		pthread_barrier_wait(&b);
		kymo_span_end(mpi, barrier);
	}
	return x;
}
int main(void)
{
	pthread_t t[4];
	pthread_barrier_init(&b, 0, 4);
	start(t, 4, rank);
	finish(t, 4);
}
