/* span: z:req expect: nothing */
#include "clock.h"
static int p[2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	int id;
	if (k == 0) {
		usleep(5000);
		for (int i = 1; i <= 500; i++) {
			kymo_async_begin(z, req, (uint64_t)i, kymo_i32(tag, pick(30)));
			if (write(p[1], &i, 4) < 0)
				break;
			usleep(700);
		}
		close(p[1]);
		return x;
	}
	while (read(p[0], &id, 4) == 4) {
		busy(30 - 40 * log(dice() + 1e-9));
		kymo_async_end(z, req, (uint64_t)id);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	if (pipe(p))
		return 1;
	start(t, 3, work);
	finish(t, 3);
}
