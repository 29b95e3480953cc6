/* span: conn:serve expect: legacy */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	prctl(PR_SET_NAME, k == 3 ? "legacy" : "modern");
	for (int i = 0; i < 250; i++) {
		kymo_span_begin(conn, serve, kymo_i32(req, pick(5000)));
		busy(50 + pick(20));
		if (k == 3)
			usleep(500);
		kymo_span_end(conn, serve);
		usleep(600);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 5, work);
	finish(t, 5);
}
