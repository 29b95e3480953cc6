/* span: net:fetch expect: (event net:timeout comes|net:timeout) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(net, fetch, kymo_string(host, below(2) ? "east" : "west"));
		spin(about(50));
		while (chance(.06)) {
			snooze(1200);
			kymo_event(net, timeout, kymo_i32(fd, 3 + below(9)));
		}
		spin(about(50));
		kymo_span_end(net, fetch);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
