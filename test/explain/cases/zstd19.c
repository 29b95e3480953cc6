/* span: arc:pack expect: level = 19 */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 500; i++) {
		int level = pick(17) ? pick(2) ? 1 : 3 : 19;
		kymo_span_begin(arc, pack, kymo_i32(level, level),
			kymo_u32(bytes, 1000u + (unsigned)pick(60000)));
		busy(20 + 3 * level + pick(15) + (level == 19 ? 700 : 0));
		kymo_span_end(arc, pack);
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
