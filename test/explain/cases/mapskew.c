/* span: mr:join expect: (map:task|mapper-2) */
#include "clock.h"
static pthread_barrier_t b;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	char n[16];
	snprintf(n, sizeof(n), "mapper-%d", k);
	prctl(PR_SET_NAME, n);
	for (int i = 0; i < 280; i++) {
		kymo_span_begin(map, task);
		usleep(k == 2 && i % 15 == 6 ? 4500 : 250);
		kymo_span_end(map, task);
		kymo_span_begin(mr, join);
		pthread_barrier_wait(&b);
		kymo_span_end(mr, join);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	pthread_barrier_init(&b, 0, 4);
	start(t, 4, work);
	finish(t, 4);
}
