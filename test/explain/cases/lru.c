/* span: cache:get expect: origin:fetch */
#include "common.h"
static void *work(void *x)
{
	static __thread int slots[64];
	for (int i = 0; i < 800; i++) {
		int key = chance(.94) ? below(40) : below(100000);
		kymo_span_begin(cache, get, kymo_i32(key, key));
		spin(about(12));
		if (slots[key % 64] != key + 1 && key >= 40) {
			kymo_span_begin(origin, fetch);
			snooze(900 + exponential(500));
			kymo_span_end(origin, fetch);
			slots[key % 64] = key + 1;
		}
		spin(about(6));
		kymo_span_end(cache, get);
		snooze(150);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
