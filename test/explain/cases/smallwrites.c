/* span: rep:save expect: io:write */
#include "clock.h"
static int fd;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 400; i++) {
		kymo_span_begin(rep, save, kymo_i32(doc, pick(500)));
		for (int n = pick(20) ? 2 : 60; n--;) {
			kymo_span_begin(io, write);
			if (pwrite(fd, &n, 4, pick(100000)) < 0)
				return 0;
			busy(8);
			kymo_span_end(io, write);
		}
		kymo_span_end(rep, save);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];
	char path[] = "/tmp/repXXXXXX";
	fd = mkstemp(path);
	unlink(path);
	start(t, 2, work);
	finish(t, 2);
}
