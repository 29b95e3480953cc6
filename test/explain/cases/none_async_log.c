/* span: n:msg expect: nothing */
#include "clock.h"
static int p[2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int id;
	if (k == 0) {
		usleep(5000);
		for (int i = 1; i <= 600; i++) {
			kymo_async_begin(n, msg, (uint64_t)i, kymo_i32(len, pick(900)));
			if (write(p[1], &i, 4) < 0)
				break;
			usleep(600);
		}
		close(p[1]);
		return x;
	}
	while (read(p[0], &id, 4) == 4) {
		double z = 0;
		for (int j = 0; j < 12; j++)
			z += dice();
		kymo_async_begin(n, handle, (uint64_t)id);
		busy(60 * exp(.4 * (z - 6)));
		kymo_async_end(n, handle, (uint64_t)id);
		kymo_async_end(n, msg, (uint64_t)id);
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
