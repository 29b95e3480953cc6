/* span: db:write expect: sqlite:busy */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 450; i++) {
		kymo_span_begin(db, write, kymo_i32(table, pick(12)));
		busy(30 + pick(10));
		for (int n = pick(17) ? 0 : 4 + pick(3); n--;) {
			kymo_event(sqlite, busy, kymo_i32(left, n));
			usleep(500);
		}
		kymo_span_end(db, write);
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
