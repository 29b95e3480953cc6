/* span: buf:fill expect: map:rebuild */
#include "common.h"
#include <sys/mman.h>
static atomic_int stop;
static void *mapper(void *x)
{
	name_thread("mapper");
	while (!stop) {
		snooze(20000 + exponential(10000));
		kymo_span_begin(map, rebuild);
		for (int i = 0; i < 12; i++) {
			char *p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
			munmap(p, 8 << 20);
		}
		kymo_span_end(map, rebuild);
	}
	return x;
}
int main(void)
{
	pthread_t t;
	spin(1);
	pthread_create(&t, NULL, mapper, NULL);
	for (int i = 0; i < 2000; i++) {
		kymo_span_begin(buf, fill, kymo_i32(slot, i % 16));
		char *p = mmap(
			NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int k = 0; k < 65536; k += 4096)
			p[k] = 1;
		munmap(p, 65536);
		spin(about(60));
		kymo_span_end(buf, fill);
		snooze(200);
	}
	stop = 1;
	pthread_join(t, NULL);
}
