/* SPDX-License-Identifier: MIT */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include "base/buf.h"

/*
 * Appends a field of comma-separated values (RFC 4180), in quotes if it needs them. An empty text
 * has quotes, so that it differs from a value that is not there.
 */
void ky_buf_put_csv(struct ky_buf *to, const char *text, size_t len);

#endif
