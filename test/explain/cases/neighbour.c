/* span: vm:exit expect: from \d */
#include "clock.h"
int main(void)
{
	uint64_t t0 = clock_us();
	for (int i = 0; clock_us() - t0 < 600000; i++) {
		uint64_t t = clock_us() - t0;
		kymo_span_begin(vm, exit, kymo_i32(reason, pick(12)));
		busy(40 + pick(15));
		if (t > 240000 && t < 330000)
			usleep(1200);
		kymo_span_end(vm, exit);
		usleep(250);
	}
}
