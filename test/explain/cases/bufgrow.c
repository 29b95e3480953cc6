/* span: out:append expect: buf:grow */
#include "clock.h"
int main(void)
{
	for (int r = 0; r < 20; r++) {
		size_t cap = 1 << 12, n = 0;
		char *v = malloc(cap);
		memset(v, 0, cap);
		for (int i = 0; i < 120; i++) {
			size_t add = 4000 + (size_t)pick(20000);
			kymo_span_begin(out, append, kymo_u32(bytes, (unsigned)add));
			if (n + add > cap) {
				char *w;
				kymo_event(buf, grow, kymo_u64(from, cap));
				w = malloc(cap * 8);
				memcpy(w, v, n);
				memset(w + n, 0, cap * 8 - n);
				free(v);
				v = w;
				cap *= 8;
			}
			memset(v + n, 1, add);
			n += add;
			busy(10);
			kymo_span_end(out, append);
		}
		free(v);
	}
}
