/* span: net:tx expect: nothing */
#include "common.h"
int main(void)
{
	spin(1);
	for (uint64_t i = 1; i <= 1500; i++) {
		kymo_async_begin(net, tx, i, kymo_i32(bytes, below(1500)));
		spin(about(30));
		kymo_event(net, queued, kymo_i32(depth, below(5)));
		snooze(exponential(200));
		spin(about(30));
		kymo_async_end(net, tx, i);
		snooze(100);
	}
}
