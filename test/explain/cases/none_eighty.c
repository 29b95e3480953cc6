/* span: n:batch expect: nothing */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 80; i++) {
		double z = 0;
		for (int k = 0; k < 12; k++)
			z += dice();
		kymo_span_begin(n, batch, kymo_i32(rows, pick(5000)),
			kymo_string(day, pick(2) ? "mon" : "tue"));
		busy(4000 * exp(.35 * (z - 6)));
		kymo_span_end(n, batch);
	}
}
