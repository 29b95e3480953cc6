/* span: dl:file expect: dl:part */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 400; i++) {
		uint64_t id = (uint64_t)k * 100000 + (uint64_t)i;
		kymo_async_begin(dl, file, id, kymo_i32(mirror, pick(5)));
		for (int n = pick(18) ? 1 : 10; n--;) {
			kymo_async_begin(dl, part, id);
			busy(50 + pick(20));
			kymo_async_end(dl, part, id);
		}
		kymo_async_end(dl, file, id);
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
