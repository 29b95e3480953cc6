/* span: cli:ask expect: loop:gc */
#include "clock.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
static int e[2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	uint64_t v = 1;
	if (k) {
		int ep = epoll_create1(0), n = 0;
		struct epoll_event ev = {.events = EPOLLIN};
		prctl(PR_SET_NAME, "loop");
		epoll_ctl(ep, EPOLL_CTL_ADD, e[0], &ev);
		while (n < 600) {
			if (epoll_wait(ep, &ev, 1, 5) == 1 && read(e[0], &v, 8) == 8) {
				n++;
				if (!pick(25)) {
					kymo_span_begin(loop, gc);
					busy(2800);
					kymo_span_end(loop, gc);
				}
				v = 1;
				if (write(e[1], &v, 8) < 0)
					break;
			}
		}
		return x;
	}
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(cli, ask, kymo_i32(q, pick(70)));
		if (write(e[0], &v, 8) < 0 || read(e[1], &v, 8) < 0)
			break;
		v = 1;
		kymo_span_end(cli, ask);
		usleep(250);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	e[0] = eventfd(0, 0);
	e[1] = eventfd(0, 0);
	start(t, 2, work);
	finish(t, 2);
}
