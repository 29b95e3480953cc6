/* span: app:page expect: the first \d+ of */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 900; i++) {
		kymo_span_begin(app, page, kymo_i32(user, below(100)));
		spin(about(100));
		if (i < 18)
			spin(1500 - 40 * i); /* code not compiled yet */
		kymo_span_end(app, page);
		snooze(200);
	}
}
