/* SPDX-License-Identifier: MIT */
/*
 * Reads the metadata file of a trace as one text. The file is plain text, or consists of packets,
 * as LTTng writes it. Called when a trace is opened.
 */
#ifndef READER_METADATA_H
#define READER_METADATA_H

#include "base/buf.h"

#define KY_METADATA_MAX ((size_t)256 << 20)

/*
 * Appends the text to *text; the caller deinits it in any case. Returns 0, or 1 if the file has
 * bytes behind its packets that are none and were left out; -EBADMSG if the first packet is
 * invalid, -ENOTSUP if a packet is compressed or encrypted, -EFBIG, or the error of open() or
 * read().
 */
int ky_metadata_read(struct ky_buf *text, const char *path);
/* Does the same with a file in memory. */
int ky_metadata_text(struct ky_buf *text, const char *data, size_t len);

#endif
