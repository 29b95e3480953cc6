/* span: ft:copy expect: nothing */
#include "common.h"
static void *work(void *x)
{
	name_thread((intptr_t)x ? "alice" : "bob");
	for (int i = 0; i < 800; i++) {
		kymo_span_begin(ft, copy, kymo_i32(file, below(5)));
		spin(40 + 60 * exp(.8 * normal()));
		kymo_event(ft, progress, kymo_i32(percent, 50));
		spin(about(20));
		kymo_span_end(ft, copy);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
