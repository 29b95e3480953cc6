/* span: sql:run expect: scan = "seq" */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		int seq = chance(.07);
		kymo_span_begin(sql, run, kymo_i32(conn, below(20)));
		spin(about(30));
		spin(about(seq ? 900 : 70));
		kymo_span_end(sql, run,
			kymo_string(scan, seq	     ? "seq"
					  : below(2) ? "index"
						     : "bitmap"),
			kymo_i32(rows, below(100)));
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
