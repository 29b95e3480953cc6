/* SPDX-License-Identifier: MIT */
/* Fields of messages of protobuf, appended to a buffer. */
#ifndef EXPORT_PROTOBUF_H
#define EXPORT_PROTOBUF_H

#include "base/buf.h"

/* field: its number in the schema. Errors are the buffer's. */
void ky_pb_number(struct ky_buf *b, unsigned field, uint64_t v);
void ky_pb_fixed(struct ky_buf *b, unsigned field, uint64_t v);
void ky_pb_double(struct ky_buf *b, unsigned field, double d);
void ky_pb_bytes(struct ky_buf *b, unsigned field, const char *text, size_t len);
void ky_pb_message(struct ky_buf *b, unsigned field, const struct ky_buf *message);
/* A string of protobuf is UTF-8: U+FFFD replaces each other byte. */
void ky_pb_string(struct ky_buf *b, unsigned field, const char *text, size_t len);

#endif
