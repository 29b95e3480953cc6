/* span: sensor:read expect: from [0-9] */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 3000; i++) {
		kymo_span_begin(sensor, read, kymo_i32(id, below(12)));
		spin(about(60));
		if (i > 1200 && i < 1270)
			spin(about(900));
		kymo_span_end(sensor, read);
		snooze(200);
	}
}
