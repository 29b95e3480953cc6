/* span: lsm:get expect: disk:seek */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		int levels = chance(.06) ? 9 : 1 + below(2);
		kymo_span_begin(lsm, get, kymo_i32(key, below(1 << 20)));
		for (int k = 0; k < levels; k++) {
			kymo_span_begin(disk, seek, kymo_i32(level, k));
			snooze(60);
			kymo_span_end(disk, seek);
			spin(about(8));
		}
		kymo_span_end(lsm, get);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
