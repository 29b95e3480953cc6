/* span: tel:point expect: each 16th */
#include "clock.h"
int main(void)
{
	for (int i = 1; i <= 1400; i++) {
		kymo_span_begin(tel, point, kymo_f64(value, dice()), kymo_i32(series, pick(40)));
		busy(15 + pick(8));
		if (i % 16 == 0)
			busy(350);
		kymo_span_end(tel, point);
		usleep(40);
	}
}
