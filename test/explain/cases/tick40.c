/* span: rt:loop expect: every \d */
#include "clock.h"
int main(void)
{
	uint64_t t0 = clock_us();
	while (clock_us() - t0 < 900000) {
		kymo_span_begin(rt, loop, kymo_i32(axis, pick(6)));
		busy(45 + pick(15));
		if ((clock_us() - t0) % 40000 < 700)
			usleep(1700);
		kymo_span_end(rt, loop);
		usleep(150);
	}
}
