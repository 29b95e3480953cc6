/* span: cl:query expect: net:reset */
#include "clock.h"
int main(void)
{
	for (int i = 0; i < 800; i++) {
		int reset = !pick(22);
		if (reset) {
			kymo_event(net, reset, kymo_i32(peer, pick(6)));
			usleep(100);
		}
		kymo_span_begin(cl, query, kymo_i32(n, pick(500)));
		busy(50 + pick(20));
		if (reset)
			usleep(2000);
		kymo_span_end(cl, query);
		usleep(150);
	}
}
