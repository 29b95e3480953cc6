/* span: tile:load expect: cached = 0 */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 450; i++) {
		uint64_t id = (uint64_t)k * 10000 + (uint64_t)i;
		int cached = pick(16) != 0;
		kymo_async_begin(tile, load, id, kymo_i32(zoom, pick(18)));
		busy(30 + pick(10) + (cached ? 0 : 900));
		kymo_async_end(tile, load, id, kymo_bool(cached, cached));
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
