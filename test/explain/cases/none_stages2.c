/* span: n:flow expect: nothing */
#include "clock.h"
static int fd[2];
static void *peer(void *x)
{
	uint64_t id;
	while (read(fd[0], &id, sizeof(id)) == sizeof(id)) {
		kymo_async_end(n, queued, id);
		kymo_async_begin(n, served, id);
		busy(30 - 30 * log(dice() + 1e-9));
		kymo_async_end(n, served, id);
		kymo_async_end(n, flow, id);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	if (pipe(fd))
		return 1;
	pthread_create(&t, 0, peer, 0);
	usleep(3000);
	for (uint64_t i = 1; i < 800; i++) {
		kymo_async_begin(n, flow, i, kymo_i32(tag, pick(9)));
		kymo_async_begin(n, queued, i);
		if (write(fd[1], &i, sizeof(i)) < 0)
			break;
		usleep(500);
	}
	close(fd[1]);
	pthread_join(t, 0);
}
