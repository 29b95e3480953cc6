/* span: img:thumb expect: img:decode|pool:trim */
#include "common.h"
#include <sys/mman.h>
int main(void)
{
	size_t n = 12 << 20;
	spin(1);
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, n);
	for (int i = 0; i < 1200; i++) {
		if (chance(.03)) {
			madvise(p, n, MADV_DONTNEED);
			kymo_event(pool, trim, kymo_u64(bytes, n));
		}
		kymo_span_begin(img, thumb, kymo_i32(id, below(100000)));
		kymo_span_begin(img, decode);
		for (size_t k = 0; k < n; k += 4096)
			p[k]++;
		spin(about(50));
		kymo_span_end(img, decode);
		kymo_span_begin(img, scale);
		spin(about(120));
		kymo_span_end(img, scale);
		kymo_span_end(img, thumb);
		snooze(200);
	}
}
