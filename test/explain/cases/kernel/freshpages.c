/* span: img:buffer expect: (page fault|mmap|munmap) */
#include "common.h"
#include <sys/mman.h>
int main(void)
{
	spin(1);
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(img, buffer, kymo_i32(w, below(100)));
		spin(about(60));
		if (chance(.06)) {
			char *p = mmap(0, 6 << 20, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			for (int k = 0; k < 6 << 20; k += 4096)
				p[k] = 1;
			munmap(p, 6 << 20);
		}
		kymo_span_end(img, buffer);
		snooze(300);
	}
}
