/* SPDX-License-Identifier: MIT */
/*
 * Columns of numbers as the page of a report reads them: unsigned numbers of any size, 7 bits in
 * each byte, the lowest first; the highest bit of a byte is set if more bytes follow (LEB128).
 */
#ifndef REPORT_COLUMN_H
#define REPORT_COLUMN_H

#include "base/buf.h"

static inline void ky_column_put(struct ky_buf *b, uint64_t v)
{
	uint8_t *to = ky_buf_reserve(b, 10);
	size_t n = 0;

	if (!to)
		return;
	for (; v >= 128; v >>= 7)
		to[n++] = (uint8_t)(v | 128);
	to[n++] = (uint8_t)v;
	b->len += n;
}

/* Appends columns to *part: first their lengths in bytes. An error of one is then one of *part. */
static inline void ky_columns_join(
	struct ky_buf *part, const struct ky_buf *const *columns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ky_column_put(part, columns[i]->len);
	for (size_t i = 0; i < n; i++) {
		ky_buf_append(part, columns[i]->data, columns[i]->len);
		if (columns[i]->error)
			part->error = columns[i]->error;
	}
}

#endif
