/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

void ky_buf_deinit(struct ky_buf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

void *ky_buf_reserve(struct ky_buf *b, size_t n)
{
	size_t want, cap;
	char *data;

	if (b->error)
		return NULL;
	if (n > SIZE_MAX / 4 - b->len || (b->max && b->len + n > b->max)) {
		b->error = -EMSGSIZE;
		return NULL;
	}
	want = b->len + n + 1;
	if (want > b->cap) {
		cap = KY_MAX(b->cap * 2, KY_MAX(want, (size_t)256));
		data = realloc(b->data, cap);
		if (!data) {
			b->error = -ENOMEM;
			return NULL;
		}
		b->data = data;
		b->cap = cap;
	}
	return b->data + b->len;
}

void ky_buf_append(struct ky_buf *b, const void *p, size_t n)
{
	char *to = ky_buf_reserve(b, n);

	if (!to)
		return;
	if (n)
		memcpy(to, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void ky_buf_puts(struct ky_buf *b, const char *s)
{
	ky_buf_append(b, s, strlen(s));
}

void ky_buf_vprintf(struct ky_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char *to;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0) {
		b->error = b->error ? b->error : -EINVAL;
		return;
	}
	to = ky_buf_reserve(b, (size_t)n);
	if (!to)
		return;
	vsnprintf(to, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
}

void ky_buf_printf(struct ky_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ky_buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void ky_buf_consume(struct ky_buf *b, size_t n)
{
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

void ky_buf_put_word(struct ky_buf *b, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";

	if (*word && strspn(word, plain) == strlen(word)) {
		ky_buf_puts(b, word);
		return;
	}
	ky_buf_puts(b, "'");
	for (; *word; word++)
		ky_buf_printf(b, *word == '\'' ? "'\\''" : "%c", *word);
	ky_buf_puts(b, "'");
}
