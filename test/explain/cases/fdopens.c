/* span: scan:dir expect: fd:open */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 400; i++) {
		int n = pick(18) ? 3 : 90;
		kymo_span_begin(scan, dir, kymo_i32(depth, pick(6)));
		for (int j = 0; j < n; j++) {
			kymo_event(fd, open, kymo_i32(fd, j));
			busy(12);
		}
		kymo_span_end(scan, dir);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
