/* span: page:show expect: cache:invalidate|first .*after */
#include "clock.h"
int main(void)
{
	int valid = 0;
	for (int i = 0; i < 900; i++) {
		if (!pick(25)) {
			kymo_event(cache, invalidate, kymo_i32(reason, pick(3)));
			valid = 0;
		}
		kymo_span_begin(page, show, kymo_i32(user, pick(100)));
		busy(60 + pick(20) + (valid ? 0 : 1100));
		valid = 1;
		kymo_span_end(page, show);
		usleep(200);
	}
}
