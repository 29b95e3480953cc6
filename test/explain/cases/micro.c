/* span: mm:map expect: tlb:flush */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 6000; i++) {
		kymo_span_begin(mm, map, kymo_u32(page, (unsigned)pick(1 << 20)));
		busy(2);
		if (!pick(90)) {
			kymo_span_begin(tlb, flush);
			busy(45);
			kymo_span_end(tlb, flush);
		}
		kymo_span_end(mm, map);
		busy(1);
	}
}
