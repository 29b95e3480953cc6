/* span: cad:open expect: license */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int expired = 0;
	for (int i = 0; i < 600; i++) {
		if (!pick(24)) {
			kymo_event(license, expired, kymo_i32(seat, pick(50)));
			expired = 1;
		}
		kymo_span_begin(cad, open, kymo_i32(parts, pick(900)));
		busy(40 + pick(15));
		if (expired)
			usleep(1700);
		expired = 0;
		kymo_span_end(cad, open);
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
