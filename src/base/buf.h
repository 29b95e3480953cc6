/* SPDX-License-Identifier: MIT */
/*
 * A growing byte buffer with a limit. The first failure (allocation failed, limit reached) is kept:
 * later calls do nothing, and the caller checks `error` once, at the end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>

#include "base/util.h"

struct ky_buf {
	char *data; /* owned; NUL-terminated by ky_buf_printf and ky_buf_puts */
	size_t len;
	size_t cap;
	size_t max; /* 0: no limit */
	int error;  /* 0, -ENOMEM or -EMSGSIZE */
};

void ky_buf_deinit(struct ky_buf *b);
/* Makes room for n more bytes. Returns their place, or NULL (see error). Does not change len. */
void *ky_buf_reserve(struct ky_buf *b, size_t n);
void ky_buf_append(struct ky_buf *b, const void *p, size_t n);
void ky_buf_puts(struct ky_buf *b, const char *s);
void ky_buf_printf(struct ky_buf *b, const char *fmt, ...) KY_PRINTF(2, 3);
void ky_buf_vprintf(struct ky_buf *b, const char *fmt, va_list ap) KY_PRINTF(2, 0);
/* Appends a word of a command line, quoted if a shell would not read it back as it is. */
void ky_buf_put_word(struct ky_buf *b, const char *word);
/* Drops the first n bytes (n <= len). */
void ky_buf_consume(struct ky_buf *b, size_t n);

#endif
