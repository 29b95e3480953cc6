/* span: fs:scan expect: fs:dir */
#include "common.h"
static void dir(int depth)
{
	kymo_span_begin(fs, dir, kymo_i32(depth, depth));
	spin(about(15));
	if (depth)
		dir(depth - 1);
	kymo_span_end(fs, dir);
}
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		kymo_span_begin(fs, scan);
		dir(chance(.05) ? 70 : 3 + below(3));
		kymo_span_end(fs, scan);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
