/* span: b:put expect: each 40th of the (thread|trace) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 1000; i++) {
		kymo_span_begin(b, put, kymo_i32(bytes, below(512)));
		spin(about(50));
		if (i % 40 == 39)
			spin(about(900)); /* flushes the batch */
		kymo_span_end(b, put);
		snooze(120);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
