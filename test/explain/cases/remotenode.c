/* span: mem:copy expect: (node1|n1-) */
#include "clock.h"
static void *w(void *x)
{
	char n[16];
	int k = (int)(intptr_t)x;
	snprintf(n, sizeof(n), "node%d-w%d", k == 4, k);
	prctl(PR_SET_NAME, n);
	for (int i = 0; i < 220; i++) {
		kymo_span_begin(mem, copy, kymo_i32(pages, pick(64)));
		busy(60 + pick(25) + (k == 4 ? 220 : 0));
		kymo_span_end(mem, copy);
		usleep(700);
	}
	return x;
}
int main(void)
{
	pthread_t t[6];
	start(t, 6, w);
	finish(t, 6);
}
