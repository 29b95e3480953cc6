/* span: audit:verify expect: later */
#include "clock.h"
int main(void)
{
	volatile unsigned h = 0;
	for (int i = 0; i < 1800; i++) {
		kymo_span_begin(audit, verify, kymo_u32(entry, (unsigned)pick(1 << 20)));
		for (int k = 0; k < 2000 + i * 60; k++)
			h = h * 31 + (unsigned)k;
		kymo_span_end(audit, verify);
	}
}
