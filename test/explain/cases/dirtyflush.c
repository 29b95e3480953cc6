/* span: db:update expect: buf:flush_sync */
#include "clock.h"
static int dirty;
int main(void)
{
	for (int i = 0; i < 1400; i++) {
		kymo_span_begin(db, update, kymo_i32(row, pick(100000)),
			kymo_string(table, pick(2) ? "t1" : "t2"));
		busy(35 + pick(15));
		dirty += 1 + pick(3);
		kymo_counter(buf, dirty, dirty);
		if (dirty > 120) {
			kymo_span_begin(buf, flush_sync, kymo_i32(pages, dirty));
			usleep(2500);
			dirty = 0;
			kymo_span_end(buf, flush_sync);
		}
		busy(10);
		kymo_span_end(db, update);
		usleep(80);
	}
}
