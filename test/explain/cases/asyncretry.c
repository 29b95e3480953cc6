/* span: up:file expect: up:chunk */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 400; i++) {
		uint64_t id = (uint64_t)(intptr_t)x * 1000000 + (uint64_t)i;
		int tries = chance(.06) ? 7 : 1;
		kymo_async_begin(up, file, id, kymo_i32(len, below(100)));
		spin(about(30));
		for (int k = 0; k < tries; k++) {
			kymo_async_begin(up, chunk, id, kymo_i32(try, k));
			spin(about(90));
			kymo_async_end(up, chunk, id);
			spin(about(5));
		}
		kymo_async_end(up, file, id);
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
