/* SPDX-License-Identifier: MIT */
#include "proto/wire.h"

void ky_write_raw(struct ky_writer *w, const void *p, size_t n)
{
	if (w->error || n > w->cap - w->len) {
		w->error = -EMSGSIZE;
		return;
	}
	if (n)
		memcpy(w->buf + w->len, p, n);
	w->len += n;
}

void ky_write_u8(struct ky_writer *w, uint8_t v)
{
	ky_write_raw(w, &v, sizeof(v));
}

void ky_write_u32(struct ky_writer *w, uint32_t v)
{
	ky_write_raw(w, &v, sizeof(v));
}

void ky_write_u64(struct ky_writer *w, uint64_t v)
{
	ky_write_raw(w, &v, sizeof(v));
}

void ky_write_i32(struct ky_writer *w, int32_t v)
{
	ky_write_raw(w, &v, sizeof(v));
}

void ky_write_str(struct ky_writer *w, const char *s)
{
	size_t n = strlen(s);

	if (n >= KY_MSG_MAX) {
		w->error = -EMSGSIZE;
		return;
	}
	ky_write_u32(w, (uint32_t)n);
	ky_write_raw(w, s, n + 1);
}

void ky_write_bytes(struct ky_writer *w, struct ky_bytes b)
{
	ky_write_u32(w, b.len);
	ky_write_raw(w, b.data, b.len);
}

/* n bytes of the message, or NULL and the sticky error. */
static const uint8_t *take(struct ky_reader *r, size_t n)
{
	const uint8_t *p = r->buf + r->pos;

	if (r->error || n > r->len - r->pos) {
		r->error = -EBADMSG;
		return NULL;
	}
	r->pos += n;
	return p;
}

#define READ_INT(type)                                                                             \
	const uint8_t *p = take(r, sizeof(type));                                                  \
	type v = 0;                                                                                \
	if (p)                                                                                     \
		memcpy(&v, p, sizeof(v));                                                          \
	return v

uint8_t ky_read_u8(struct ky_reader *r)
{
	READ_INT(uint8_t);
}

uint32_t ky_read_u32(struct ky_reader *r)
{
	READ_INT(uint32_t);
}

uint32_t ky_read_later_u32(struct ky_reader *r)
{
	return r->pos == r->len ? 0 : ky_read_u32(r);
}

uint64_t ky_read_u64(struct ky_reader *r)
{
	READ_INT(uint64_t);
}

int32_t ky_read_i32(struct ky_reader *r)
{
	READ_INT(int32_t);
}

const char *ky_read_str(struct ky_reader *r)
{
	uint32_t n = ky_read_u32(r);
	const uint8_t *p = r->error ? NULL : take(r, (size_t)n + 1);

	if (p && (p[n] != 0 || memchr(p, 0, n))) {
		r->error = -EBADMSG;
		p = NULL;
	}
	return p ? (const char *)p : "";
}

struct ky_bytes ky_read_bytes(struct ky_reader *r)
{
	struct ky_bytes b = {NULL, 0};
	uint32_t n = ky_read_u32(r);
	const uint8_t *p = r->error ? NULL : take(r, n);

	if (p) {
		b.data = p;
		b.len = n;
	}
	return b;
}

struct ky_bytes ky_read_later_bytes(struct ky_reader *r)
{
	return r->pos == r->len ? (struct ky_bytes){NULL, 0} : ky_read_bytes(r);
}

void ky_msg_begin(struct ky_writer *w, uint16_t type)
{
	struct ky_msg_hdr hdr = {.type = type};

	ky_write_raw(w, &hdr, sizeof(hdr));
}

int ky_msg_end(struct ky_writer *w)
{
	uint32_t len = (uint32_t)w->len;

	if (w->error)
		return w->error;
	if (w->len > KY_MSG_MAX)
		return w->error = -EMSGSIZE;
	memcpy(w->buf + offsetof(struct ky_msg_hdr, len), &len, sizeof(len));
	return (int)len;
}

int ky_msg_open(struct ky_reader *r, const void *buf, size_t len)
{
	struct ky_msg_hdr hdr;

	if (len < sizeof(hdr))
		return -EBADMSG;
	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.len != len || !hdr.type)
		return -EBADMSG;
	*r = (struct ky_reader){.buf = buf, .len = len, .pos = sizeof(hdr)};
	return hdr.type;
}
