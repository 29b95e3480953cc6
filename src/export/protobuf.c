/* SPDX-License-Identifier: MIT */
#include "export/protobuf.h"

#include <endian.h>

#include "base/utf8.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

static void ky_pb_varint(struct ky_buf *b, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (char)(v | 0x80);
	bytes[n++] = (char)v;
	ky_buf_append(b, bytes, n);
}

static void ky_pb_tag(struct ky_buf *b, unsigned field, enum wire wire)
{
	ky_pb_varint(b, (uint64_t)field << 3 | wire);
}

void ky_pb_number(struct ky_buf *b, unsigned field, uint64_t v)
{
	ky_pb_tag(b, field, WIRE_VARINT);
	ky_pb_varint(b, v);
}

void ky_pb_fixed(struct ky_buf *b, unsigned field, uint64_t v)
{
	ky_pb_tag(b, field, WIRE_64);
	v = htole64(v);
	ky_buf_append(b, &v, sizeof(v));
}

void ky_pb_double(struct ky_buf *b, unsigned field, double d)
{
	uint64_t v;

	memcpy(&v, &d, sizeof(v));
	ky_pb_fixed(b, field, v);
}

void ky_pb_bytes(struct ky_buf *b, unsigned field, const char *text, size_t len)
{
	ky_pb_tag(b, field, WIRE_BYTES);
	ky_pb_varint(b, len);
	ky_buf_append(b, text, len);
}

void ky_pb_message(struct ky_buf *b, unsigned field, const struct ky_buf *message)
{
	ky_pb_bytes(b, field, message->data, message->len);
}

void ky_pb_string(struct ky_buf *b, unsigned field, const char *text, size_t len)
{
	struct ky_buf valid = {0};
	bool harmless;
	uint32_t code;

	if (ky_utf8_valid(text, len)) {
		ky_pb_bytes(b, field, text, len);
		return;
	}
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = ky_utf8_length(text + i, len - i, &code, &harmless);
		ky_buf_append(&valid, n ? text + i : "\xef\xbf\xbd", n ? n : 3);
	}
	ky_pb_bytes(b, field, valid.data, valid.len);
	ky_buf_deinit(&valid);
}
