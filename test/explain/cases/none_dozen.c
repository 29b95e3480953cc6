/* span: n:work expect: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 120; i++) {
		kymo_span_begin(n, work, kymo_i32(task, pick(400)));
		busy(60 + 15 * (dice() + dice() + dice()));
		kymo_span_end(n, work);
		usleep(1500);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 12, work);
	finish(t, 12);
}
