/* span: n:op expect: nothing */
#include "common.h"
static void *work(void *x)
{
	char name[16];
	snprintf(name, sizeof(name), "w%d", (int)(intptr_t)x);
	name_thread(name);
	for (int i = 0; i < 120; i++) {
		kymo_span_begin(n, op, kymo_i32(a, below(10)), kymo_i32(b, below(100)));
		spin(80 * exp(.4 * normal()));
		kymo_span_end(n, op);
		snooze(exponential(1500));
	}
	return x;
}
int main(void)
{
	run_threads(12, work);
}
