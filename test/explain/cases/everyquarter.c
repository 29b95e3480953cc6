/* span: rpc:echo expect: every \d */
#include "clock.h"
int main(void)
{
	uint64_t t0 = clock_us();
	while (clock_us() - t0 < 1500000) {
		kymo_span_begin(rpc, echo, kymo_i32(client, pick(30)));
		busy(40 + pick(15));
		if ((clock_us() - t0) % 100000 < 4000)
			usleep(2500);
		kymo_span_end(rpc, echo);
		usleep(400);
	}
}
