/* span: n:op expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int slow = chance(.06);
		kymo_span_begin(n, op, kymo_i32(size, below(1000)),
			kymo_string(kind, below(2) ? "a" : "b"));
		spin(about(100) * (slow ? 6 : 1));
		kymo_span_end(n, op);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
