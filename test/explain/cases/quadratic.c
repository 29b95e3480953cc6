/* span: cart:total expect: items */
#include "clock.h"
static volatile int sink;
int main(void)
{
	for (int i = 0; i < 900; i++) {
		int n = 1 + (int)(-30 * log(dice() + 1e-9));
		kymo_span_begin(cart, total, kymo_i32(items, n),
			kymo_string(coupon, pick(5) ? "" : "XMAS"),
			kymo_i32(customer, pick(10000)));
		for (int a = 0; a < n * 6; a++)
			for (int b = 0; b < n * 6; b++)
				sink = a * b;
		kymo_span_end(cart, total);
		usleep(50);
	}
}
