/* span: sys:write expect: flags */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 1000; i++) {
		unsigned flags = (unsigned)pick(4) | (pick(20) ? 0 : 8u);
		kymo_span_begin(
			sys, write, kymo_u32(flags, flags), kymo_u32(len, (unsigned)pick(65536)));
		busy(40 + pick(10) + (flags & 8 ? 500 : 0));
		kymo_span_end(sys, write);
		usleep(60);
	}
}
