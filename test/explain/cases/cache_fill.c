/* span: api:get expect: runs .*disk:read */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(api, get, kymo_u32(key, (uint32_t)below(1000)));
		spin(about(40));
		kymo_span_begin(cache, lookup);
		spin(about(8));
		if (chance(.05)) {
			kymo_span_begin(disk, read, kymo_u32(block, (uint32_t)below(100000)));
			snooze(about(1500));
			kymo_span_end(disk, read);
		}
		kymo_span_end(cache, lookup);
		spin(about(20));
		kymo_span_end(api, get);
		snooze(150);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
