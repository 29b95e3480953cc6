/* span: rpc:call expect: when cold = 1 */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		int cold = chance(.07);
		kymo_span_begin(
			rpc, call, kymo_bool(cold, cold), kymo_u8(shard, (uint8_t)below(4)));
		spin(about(90));
		if (cold)
			snooze(1800);
		kymo_span_end(rpc, call);
		snooze(200);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
