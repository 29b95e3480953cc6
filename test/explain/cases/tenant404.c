/* span: bill:run expect: 404 */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 700; i++) {
		int t = pick(20) ? 100 + pick(600) : 404;
		kymo_span_begin(bill, run, kymo_i32(account, t), kymo_i32(month, 1 + pick(12)));
		busy(40 + pick(15) + (t == 404 ? 800 : 0));
		kymo_span_end(bill, run);
		usleep(120);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
