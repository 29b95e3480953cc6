/* span: kv:lookup expect: shard = 5 */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 700; i++) {
		int shard = below(12), hot = below(2);
		kymo_span_begin(kv, lookup, kymo_i32(shard, shard), kymo_i32(hot, hot));
		spin(about(20));
		kymo_span_begin(store, read);
		spin(about(40));
		if (shard == 5)
			snooze(400 + exponential(300));
		kymo_span_end(store, read, kymo_i32(bytes, below(4096)));
		kymo_span_end(kv, lookup);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(3, work);
}
