/* SPDX-License-Identifier: MIT */
/*
 * The metadata file of a trace as one text: plain, or cut into packets as LTTng writes it. Called
 * when a trace is opened.
 */
#ifndef READER_METADATA_H
#define READER_METADATA_H

#include "base/buf.h"

#define KY_METADATA_MAX ((size_t)256 << 20)

/*
 * Appends the text to *text (caller deinits it in any case). Returns 0, -EBADMSG for packets that
 * are none, -EFBIG, or the error of open() or read().
 */
int ky_metadata_read(struct ky_buf *text, const char *path);
/* The same from memory: data is a whole file. */
int ky_metadata_text(struct ky_buf *text, const char *data, size_t len);

#endif
