/* span: mem:fill expect: page fault|page_fault */
#include "common.h"
#include <sys/mman.h>
int main(void)
{
	static char warm[1 << 20];
	spin(1);
	memset(warm, 1, sizeof(warm));
	for (int i = 0; i < 800; i++) {
		int fresh = chance(.05);
		char *p = fresh ? mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
				: warm;
		kymo_span_begin(mem, fill);
		spin(about(40));
		for (size_t k = 0; k < (fresh ? 8u << 20 : sizeof(warm)); k += 4096)
			p[k] = (char)i;
		kymo_span_end(mem, fill);
		if (fresh)
			munmap(p, 8 << 20);
		snooze(300);
	}
}
