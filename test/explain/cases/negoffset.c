/* span: seek:to expect: delta */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 800; i++) {
		long d = pick(15) ? pick(100000) : -1 - pick(100000);
		kymo_span_begin(seek, to, kymo_i64(delta, d), kymo_i32(file, pick(10)));
		busy(50 + pick(25) + (d < 0 ? 700 : 0));
		kymo_span_end(seek, to);
		usleep(60);
	}
}
