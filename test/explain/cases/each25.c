/* span: tlm:push expect: each 25th */
#include "clock.h"
int main(void)
{
	for (int i = 1; i <= 1500; i++) {
		kymo_span_begin(tlm, push, kymo_i32(metric, pick(70)));
		busy(25 + pick(10));
		if (i % 25 == 0)
			usleep(900);
		kymo_span_end(tlm, push);
		usleep(50);
	}
}
