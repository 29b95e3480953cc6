/* span: tx:begin expect: tx:rollback */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int dirty = 0;
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(tx, begin, kymo_i32(iso, pick(3)));
		busy(30 + pick(10) + (dirty ? 900 : 0));
		dirty = 0;
		kymo_span_end(tx, begin);
		usleep(150);
		if (!pick(20)) {
			kymo_event(tx, rollback, kymo_i32(reason, pick(5)));
			dirty = 1;
		}
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
