/* span: web:request expect: (nothing recorded|every \d+|cgroup) */
#include "clock.h"
static uint64_t t0;
static double used;
static void charge(double us) /* a quota of 30 ms in each period of 100 ms */
{
	static uint64_t period;
	busy(us);
	if ((clock_us() - t0) / 100000 != period)
		period = (clock_us() - t0) / 100000, used = 0;
	used += us;
	if (used > 30000)
		usleep((unsigned)(100000 - (clock_us() - t0) % 100000));
}
int main(void)
{
	t0 = clock_us();
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(web, request, kymo_i32(user, pick(500)));
		charge(200);
		kymo_span_begin(web, template);
		charge(300 + pick(200));
		kymo_span_end(web, template);
		charge(200);
		kymo_span_end(web, request);
	}
}
