/* span: n:job expect: nothing */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		uint64_t id = (uint64_t)(intptr_t)x * 100000 + (uint64_t)i;
		kymo_async_begin(n, job, id, kymo_i32(size, below(100)));
		spin(60 * exp(.7 * normal()));
		kymo_async_begin(n, stage, id);
		spin(60 * exp(.7 * normal()));
		kymo_async_end(n, stage, id);
		kymo_async_end(n, job, id);
		snooze(exponential(200));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
