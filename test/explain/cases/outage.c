/* span: up:ping expect: (up:connect|from \d\d:) */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(up, ping);
		spin(about(40));
		kymo_span_begin(up, connect);
		spin(about(30));
		if (i > 700 && i < 760)
			snooze(1500);
		kymo_span_end(up, connect);
		spin(about(20));
		kymo_span_end(up, ping);
		snooze(150);
	}
}
