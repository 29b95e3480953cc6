/* span: log:put expect: (each 128th of|log:spill) */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 1; i <= 3000; i++) {
		kymo_span_begin(log, put, kymo_i32(level, below(5)));
		spin(about(15));
		if (i % 128 == 0)
			spin(900);
		kymo_span_end(log, put);
		snooze(80);
	}
}
