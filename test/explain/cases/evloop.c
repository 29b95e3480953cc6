/* span: loop:turn expect: on:read.* comes */
#include "common.h"
#include <poll.h>
#define F 24
static int fd[F][2];
static void *feeder(void *x)
{
	for (int i = 0; i < 900; i++) {
		int n = chance(.06) ? F : 1 + below(2);
		for (int k = 0; k < n; k++)
			if (write(fd[(i + k) % F][1], "x", 1) != 1)
				abort();
		snooze(900);
	}
	for (int k = 0; k < F; k++)
		close(fd[k][1]);
	return x;
}
int main(void)
{
	pthread_t t;
	struct pollfd p[F];
	spin(1);
	for (int k = 0; k < F; k++) {
		if (pipe(fd[k]))
			return 1;
		p[k] = (struct pollfd){fd[k][0], POLLIN, 0};
	}
	pthread_create(&t, 0, feeder, 0);
	for (int open = F; open > 0;) {
		if (poll(p, F, -1) < 0)
			return 1;
		kymo_span_begin(loop, turn);
		spin(about(15));
		for (int k = 0; k < F; k++) {
			char b[64];
			ssize_t n;
			if (!p[k].revents)
				continue;
			kymo_span_begin(on, read, kymo_i32(fd, p[k].fd));
			n = read(p[k].fd, b, sizeof(b));
			if (n <= 0) {
				p[k].fd = -1;
				open--;
			}
			spin(about(30));
			kymo_span_end(on, read);
		}
		kymo_span_end(loop, turn);
	}
	pthread_join(t, 0);
}
