/* span: net:roundtrip expect: nothing */
#include "clock.h"
static int fd[2];
static void *peer(void *x)
{
	uint64_t id;
	while (read(fd[0], &id, sizeof(id)) == sizeof(id)) {
		busy(30 - 40 * log(dice() + 1e-9));
		kymo_async_end(net, roundtrip, id);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	if (pipe(fd))
		return 1;
	pthread_create(&t, 0, peer, 0);
	for (uint64_t i = 1; i < 900; i++) {
		kymo_async_begin(net, roundtrip, i, kymo_i32(route, pick(7)),
			kymo_u32(bytes, (unsigned)pick(1500)));
		if (write(fd[1], &i, sizeof(i)) < 0)
			break;
		usleep(350);
	}
	close(fd[1]);
	pthread_join(t, 0);
}
