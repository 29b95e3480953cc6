/* span: kv:incr expect: % 16 */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 700; i++) {
		int id = pick(1 << 20);
		kymo_span_begin(kv, incr, kymo_i32(user, id));
		busy(30 + pick(10) + (id % 16 == 11 ? 500 : 0));
		kymo_span_end(kv, incr);
		usleep(100);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
