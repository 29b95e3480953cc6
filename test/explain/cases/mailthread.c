/* span: imap:thread expect: (grows with messages|messages ≥) */
#include "common.h"
static volatile int sink;
static void *work(void *x)
{
	for (int i = 0; i < 350; i++) {
		int n = 40 + (int)exponential(60);
		n = n > 900 ? 900 : n;
		kymo_span_begin(imap, thread, kymo_i32(messages, n), kymo_i32(box, below(30)));
		for (int a = 0; a < n; a++)
			for (int b = 0; b < a; b++)
				sink += a ^ b;
		kymo_span_end(imap, thread);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
