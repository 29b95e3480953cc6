/* span: mem:use expect: nothing */
#include "common.h"
#include <sys/mman.h>
int main(void)
{
	spin(1);
	for (int i = 0; i < 1500; i++) {
		kymo_span_begin(mem, use, kymo_i32(pool, below(9)));
		char *p = mmap(
			NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int k = 0; k < 1 << 18; k += 4096)
			p[k] = 1;
		munmap(p, 1 << 18);
		spin(about(40));
		kymo_span_end(mem, use);
		snooze(150);
	}
}
