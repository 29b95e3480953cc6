/* span: pkg:install expect: lz:window (itself )?takes */
#include "common.h"
static void level(int n, int slow)
{
	if (n) {
		kymo_span_begin(tar, entry, kymo_i32(depth, n));
		spin(about(5));
		level(n - 1, slow);
		kymo_span_end(tar, entry);
		return;
	}
	kymo_span_begin(lz, window);
	spin(about(slow ? 900 : 40));
	kymo_span_end(lz, window);
}
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(pkg, install, kymo_i32(id, i));
		level(5, chance(.05));
		kymo_span_end(pkg, install);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
