/* span: img:load expect: bytes */
#include "clock.h"
static void *loader(void *x)
{
	for (int i = 0; i < 500; i++) {
		size_t n = (size_t)(pick(25) ? 40000 + pick(60000) : 6000000 + pick(1000000));
		char *p;
		kymo_span_begin(
			img, load, kymo_u64(bytes, n), kymo_string(kind, pick(2) ? "png" : "jpg"));
		p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t k = 0; k < n; k += 4096)
			p[k] = 1;
		munmap(p, n);
		busy(30);
		kymo_span_end(img, load);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, loader);
	finish(t, 2);
}
