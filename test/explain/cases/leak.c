/* span: reg:find expect: (the later, the longer|grows with entries) */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(reg, find, kymo_u32(hash, (uint32_t)below(1 << 30)));
		spin(about(20) + .35 * i);
		kymo_span_end(reg, find);
		snooze(100);
	}
}
