/* span: n:op expect: nothing */
#include "clock.h"
int main(void)
{
	int walk = 500;
	for (int i = 0; i < 1000; i++) {
		double z = 0;
		walk += pick(21) - 10;
		kymo_counter(n, depth, walk);
		if (!pick(15))
			kymo_event(n, tick, kymo_i32(x, pick(9)));
		for (int k = 0; k < 12; k++)
			z += dice();
		kymo_span_begin(n, op, kymo_i32(a, pick(12)));
		busy(60 * exp(.4 * (z - 6)));
		kymo_span_end(n, op);
		usleep(100);
	}
}
