/* span: tcp:send expect: tcp:rto */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(tcp, send, kymo_i32(len, below(1460)));
		spin(about(30));
		while (chance(.05)) {
			snooze(1200);
			kymo_event(tcp, rto, kymo_i32(cwnd, below(10)));
			spin(about(20));
		}
		kymo_event(tcp, sent, kymo_i32(n, 1));
		spin(about(10));
		kymo_span_end(tcp, send);
		snooze(exponential(300));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
