/* span: mail:send expect: (from \d\d:|smtp:connect) */
#include "common.h"
static void *work(void *x)
{
	double start = now_us();
	for (int i = 0; i < 500; i++) {
		double at = now_us() - start;
		kymo_span_begin(mail, send, kymo_i32(to, below(3000)));
		spin(about(30));
		kymo_span_begin(smtp, connect);
		spin(about(25));
		if (at > 300000 && at < 350000)
			snooze(1600);
		kymo_span_end(smtp, connect);
		kymo_span_end(mail, send);
		snooze(exponential(1200));
	}
	return x;
}
int main(void)
{
	run_threads(4, work);
}
