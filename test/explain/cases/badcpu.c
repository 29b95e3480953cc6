/* span: calc:run expect: (processor|cpu_id|CPU) */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		cpu_set_t s;
		CPU_ZERO(&s);
		CPU_SET(pick(8) ? 0 : 1, &s);
		sched_setaffinity(0, sizeof(s), &s);
		kymo_span_begin(calc, run, kymo_i32(n, pick(100)));
		busy(60 + pick(20));
		if (sched_getcpu() == 1)
			busy(400);
		kymo_span_end(calc, run);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, w);
	finish(t, 2);
}
