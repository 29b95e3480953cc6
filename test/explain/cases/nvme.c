/* span: io:submit expect: nvme:retry */
#include "clock.h"
#include <sys/eventfd.h>
static int e[2];
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	uint64_t v = 1;
	if (k) {
		while (read(e[0], &v, 8) == 8 && v < 1000) {
			if (!pick(25)) {
				kymo_span_begin(nvme, retry);
				usleep(4000);
				kymo_span_end(nvme, retry);
			}
			v = 1;
			if (write(e[1], &v, 8) < 0)
				break;
		}
		return x;
	}
	for (int i = 0; i < 600; i++) {
		kymo_span_begin(io, submit, kymo_i32(lba, pick(1 << 20)));
		if (write(e[0], &v, 8) < 0 || read(e[1], &v, 8) < 0)
			break;
		busy(20);
		kymo_span_end(io, submit);
		usleep(200);
	}
	v = 5000;
	if (write(e[0], &v, 8) < 0)
		return 0;
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
