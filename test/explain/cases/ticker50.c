/* span: px:quote expect: every (49|50|51)[0-9.]* ms */
#include "common.h"
int main(void)
{
	double t0;
	spin(1);
	t0 = now_us();
	for (int i = 0; i < 4000; i++) {
		kymo_span_begin(px, quote, kymo_i32(sym, below(500)));
		spin(about(50));
		if (fmod(now_us() - t0, 50000) < 900)
			spin(1100);
		kymo_span_end(px, quote);
		snooze(200);
	}
}
