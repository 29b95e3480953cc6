/* span: job:tick expect: the longest, 6\d\d ms, passes in cfg:reload */
#include "common.h"
int main(void)
{
	spin(1);
	for (int i = 0; i < 1800; i++) {
		kymo_span_begin(job, tick, kymo_i32(n, below(50)));
		spin(about(80));
		if (i == 1100) {
			kymo_span_begin(cfg, reload);
			snooze(600000);
			kymo_span_end(cfg, reload);
		}
		spin(about(30));
		kymo_span_end(job, tick);
		snooze(300);
	}
}
