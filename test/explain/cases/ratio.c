/* span: heap:compact expect: frag */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 800; i++) {
		double f = dice();
		kymo_span_begin(heap, compact, kymo_f64(frag, f), kymo_i32(gen, pick(3)));
		busy(60 + pick(25) + (f > .93 ? 1200 : 0));
		kymo_span_end(heap, compact);
		usleep(60);
	}
}
