/* span: pg:scan expect: (pg:dead|later) */
#include "clock.h"
int main(void)
{
	int dead = 0;
	for (int i = 0; i < 1200; i++) {
		dead += pick(5);
		if (dead > 700)
			dead = 0;
		kymo_counter(pg, dead, dead);
		kymo_span_begin(pg, scan, kymo_i32(rel, pick(20)));
		busy(30 + dead * .8);
		kymo_span_end(pg, scan);
		usleep(60);
	}
}
