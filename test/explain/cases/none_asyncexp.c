/* span: mq2:deliver expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		uint64_t id = (uint64_t)(intptr_t)x << 32 | (uint64_t)i;
		kymo_async_begin(mq2, deliver, id, kymo_i32(prio, below(5)));
		spin(30 * exp(.7 * normal()));
		kymo_async_begin(mq2, route, id);
		spin(30 * exp(.7 * normal()));
		kymo_async_end(mq2, route, id);
		kymo_async_end(mq2, deliver, id, kymo_i32(code, below(3)));
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
