/* span: cdn:fetch expect: apac */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 450; i++) {
		uint64_t id = (uint64_t)k * 10000 + (uint64_t)i;
		const char *r = pick(17) ? pick(2) ? "emea" : "amer" : "apac";
		kymo_async_begin(cdn, fetch, id, kymo_string(region, r), kymo_i32(kb, pick(500)));
		busy(40 + pick(15));
		if (r[1] == 'p')
			usleep(1900);
		kymo_async_end(cdn, fetch, id);
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
