/* SPDX-License-Identifier: MIT */
#include "reader/put.h"

char *ky_put_more(struct ky_put *p)
{
	struct ky_buf *out = p->out;

	if (ky_buf_reserve(out, KY_PUT_MAX)) {
		p->end = out->data + out->cap;
		return out->data + out->len;
	}
	p->end = p->waste + sizeof(p->waste);
	return p->waste;
}

char *ky_put_long(struct ky_put *p, char *to, const void *s, size_t n)
{
	for (size_t piece; n; n -= piece, s = (const char *)s + piece) {
		piece = KY_MIN(n, (size_t)KY_PUT_MAX);
		to = ky_put_room(p, to, piece);
		memcpy(to, s, piece);
		to += piece;
	}
	return to;
}

char *ky_put_u64_long(char *to, uint64_t v)
{
	return ky_put_digits(ky_put_u64(to, v / 100000000), (uint32_t)(v % 100000000));
}
