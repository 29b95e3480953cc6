/* span: api:request expect: st:auth */
#include "clock.h"
static int p[2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int id;
	if (k == 0) {
		for (int i = 1; i <= 500; i++) {
			kymo_async_begin(api, request, (uint64_t)i, kymo_i32(route, pick(9)));
			if (write(p[1], &i, 4) < 0)
				break;
			usleep(700);
		}
		close(p[1]);
		return x;
	}
	while (read(p[0], &id, 4) == 4) {
		kymo_async_begin(st, auth, (uint64_t)id);
		busy(40);
		if (!pick(22))
			usleep(3000);
		kymo_async_end(st, auth, (uint64_t)id);
		kymo_async_begin(st, render, (uint64_t)id);
		busy(60);
		kymo_async_end(st, render, (uint64_t)id);
		kymo_async_end(api, request, (uint64_t)id);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	if (pipe(p))
		return 1;
	start(t, 2, work);
	finish(t, 2);
}
