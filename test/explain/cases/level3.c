/* span: log:emit expect: level = 3 */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 600; i++) {
		int level = pick(15) ? pick(3) : 3;
		kymo_span_begin(log, emit, kymo_i32(level, level), kymo_i32(line, pick(900)));
		busy(20 + pick(8) + (level == 3 ? 260 : 0));
		kymo_span_end(log, emit);
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
