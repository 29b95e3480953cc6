/* span: db:exec expect: admin:report */
#include "clock.h"
static void exec(int joins)
{
	kymo_span_begin(db, exec);
	busy(40 + pick(20));
	if (joins > 3)
		busy(900);
	kymo_span_end(db, exec);
}
static void *w(void *x)
{
	for (int i = 0; i < 500; i++) {
		int k = pick(16);
		if (k == 0) {
			kymo_span_begin(admin, report);
			exec(9);
			kymo_span_end(admin, report);
		} else if (k < 8) {
			kymo_span_begin(shop, list);
			exec(1);
			kymo_span_end(shop, list);
		} else {
			kymo_span_begin(shop, item);
			exec(0);
			exec(1);
			kymo_span_end(shop, item);
		}
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
