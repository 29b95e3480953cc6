/* span: disk:read expect: nothing */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1200; i++) {
		kymo_span_begin(disk, read, kymo_i32(block, below(9999)));
		spin(15);
		snooze(80 + exponential(120));
		spin(15);
		kymo_span_end(disk, read);
		snooze(100);
	}
}
