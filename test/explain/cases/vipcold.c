/* span: feed:build expect: (?=.*vip)(?=.*cold) */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 1200; i++) {
		int vip = !pick(4), cold = !pick(4);
		kymo_span_begin(feed, build, kymo_bool(vip, vip), kymo_bool(cold, cold),
			kymo_i32(friends, pick(300)));
		busy(60 + pick(30) + (vip && cold ? 700 : 0));
		kymo_span_end(feed, build);
		usleep(50);
	}
}
