/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of events in words, for people.
 */
#ifndef SESSIOND_MODEL_DESCRIBE_H
#define SESSIOND_MODEL_DESCRIBE_H

#include "base/buf.h"
#include "proto/desc.h"

/* Type of a field: "i32", "u16 network", "string[2]", "u8 hex[]", "text[16]", "enum colour". */
void describe_type(struct ky_buf *b, const struct ky_desc_field *f);
/* "DEBUG_LINE (u64 id, string name)"; of a checked description. */
void describe_event(struct ky_buf *b, struct ky_bytes desc);

#endif
