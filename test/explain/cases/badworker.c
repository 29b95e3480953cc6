/* span: pool:run expect: worker-5 */
#include "clock.h"
static void *w(void *x)
{
	char n[16];
	snprintf(n, sizeof(n), "worker-%d", (int)(intptr_t)x);
	prctl(PR_SET_NAME, n);
	for (int i = 0; i < 250; i++) {
		kymo_span_begin(pool, run, kymo_i32(job, pick(9999)));
		busy(50 + pick(25) + (x == (void *)5 ? 350 : 0));
		kymo_span_end(pool, run);
		usleep(900);
	}
	return x;
}
int main(void)
{
	pthread_t t[8];
	start(t, 8, w);
	finish(t, 8);
}
