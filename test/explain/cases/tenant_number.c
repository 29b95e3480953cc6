/* span: mq:publish expect: tenant_id = 37 */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 800; i++) {
		int t = chance(.05) ? 37 : below(60);
		kymo_span_begin(
			mq, publish, kymo_u32(tenant_id, (uint32_t)t), kymo_i64(size, below(3000)));
		spin(about(t == 37 ? 800 : 90));
		kymo_span_end(mq, publish);
		snooze(150);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
