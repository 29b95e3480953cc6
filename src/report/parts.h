/* SPDX-License-Identifier: MIT */
/*
 * The parts of a report's data, as a browser can read them without a network: elements
 * <script type="kymo" id="NAME"> with base64 of raw deflate (RFC 1951), which DecompressionStream
 * unpacks. As many threads as there are processors compress them; they are written in order.
 */
#ifndef REPORT_PARTS_H
#define REPORT_PARTS_H

#include "base/buf.h"

struct ky_parts;

/* Returns NULL if there is no memory. `to` is borrowed; nobody else writes to it before the end. */
struct ky_parts *ky_parts_new(FILE *to);
/* Adds a part, and takes the bytes of *raw: it is empty afterwards. Errors are kept for the end. */
void ky_parts_add(struct ky_parts *p, const char *kind, size_t number, struct ky_buf *raw);
/* Writes all parts, and frees p. Returns 0, -ENOMEM, or the error of writing. Accepts NULL. */
int ky_parts_finish(struct ky_parts *p);

#endif
