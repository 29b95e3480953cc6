/* span: map:get expect: (grows with chain|chain ≥) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 900; i++) {
		int chain = (int)exponential(6);
		kymo_span_begin(map, get, kymo_u64(hash, (uint64_t)(uniform() * 1e15)));
		spin(about(15) + 12 * chain);
		kymo_span_end(map, get, kymo_i32(chain, chain), kymo_bool(hit, below(2)));
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
