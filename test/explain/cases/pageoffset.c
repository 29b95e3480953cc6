/* span: sql:page expect: offset */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 900; i++) {
		int off = 20 * (int)(-12 * log(dice() + 1e-9));
		kymo_span_begin(sql, page, kymo_i32(offset, off), kymo_i32(limit, 20),
			kymo_i32(user, pick(3000)));
		busy(30 + pick(10) + off * .6);
		kymo_span_end(sql, page);
		usleep(60);
	}
}
