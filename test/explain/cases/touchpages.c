/* span: buf:get expect: pages */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 400; i++) {
		int pages = 1 + (int)(-25 * log(dice() + 1e-9));
		kymo_span_begin(buf, get, kymo_i32(pages, pages), kymo_i32(owner, pick(8)));
		char *q = mmap(0, (size_t)pages * 4096 * 8, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int j = 0; j < pages * 8; j++)
			q[j * 4096] = 1;
		munmap(q, (size_t)pages * 4096 * 8);
		kymo_span_end(buf, get);
		usleep(100);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
