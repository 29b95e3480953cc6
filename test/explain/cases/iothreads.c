/* span: task:exec expect: io-1 */
#include "clock.h"
static void *w(void *x)
{
	char n[16];
	int k = (int)(intptr_t)x;
	snprintf(n, sizeof(n), "%s-%d", k < 2 ? "io" : "cpu", k);
	prctl(PR_SET_NAME, n);
	for (int i = 0; i < 180; i++) {
		kymo_span_begin(task, exec, kymo_i32(prio, pick(3)));
		busy(50 + pick(20));
		if (k < 2)
			usleep(900);
		kymo_span_end(task, exec);
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
