/* span: buf:fill expect: (each|every) 40th|mem:trim */
#include "clock.h"
int main(void)
{
	size_t n = 8u << 20;
	char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 1200; i++) {
		if (i % 40 == 39)
			madvise(p, n, MADV_DONTNEED);
		kymo_span_begin(buf, fill, kymo_i32(color, pick(256)));
		for (size_t k = 0; k < n; k += 4096)
			p[k] = (char)i;
		kymo_span_end(buf, fill);
	}
}
