/* SPDX-License-Identifier: MIT */
/*
 * Reads a whole trace to its end and formats it as text and as JSON. The input is metadata, a NUL,
 * and the bytes of one stream. An input without a NUL is a stream of a trace with every kind of
 * field.
 */
#include "linear.h"
#include "reader/format.h"
#include "reader/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char metadata[] =
	"typealias integer { size = 8; align = 8; } := u8;\n"
	"typealias integer { size = 32; align = 8; } := u32;\n"
	"trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u8 stream_id; }; };\n"
	"clock { name = c; freq = 3000000; };\n"
	"typealias integer { size = 27; map = clock.c.value; } := t27;\n"
	"typealias integer { size = 64; align = 8; map = clock.c.value; } := t64;\n"
	"stream { id = 0; event.header := struct {\n"
	"	enum : integer { size = 5; } { compact = 0 ... 30, extended = 31 } id;\n"
	"	variant <id> { struct { t27 timestamp; } compact;\n"
	"		struct { u32 id; t64 timestamp; } extended; } v; } align(8);\n"
	"	packet.context := struct { u32 content_size; u32 packet_size; u8 events_discarded;\n"
	"		u8 packet_seq_num; t27 timestamp_begin; }; };\n"
	"stream { id = 1; event.header := struct { u8 id; }; event.context := struct { string c; }; };\n"
	"event { id = 0; name = \"all\"; fields := struct { u8 n; string s; u8 seq[n]; string strings[n];\n"
	"	struct { u8 m; integer { size = 3; signed = true; base = 8; } bits[m]; } structs[n];\n"
	"	enum tag : integer { size = 3; } { a, b, c = 2 ... 5, d = 4 } tag;\n"
	"	variant <tag> { struct { } a; string b; u8 c[3]; integer { size = 64; align = 1; base = 2; } d; } v;\n"
	"	struct { } nothing[n]; u8 grid[n][n];\n"
	"	integer { size = 8; align = 8; encoding = UTF8; } text[n];\n"
	"	floating_point { exp_dig = 8; mant_dig = 24; byte_order = be; } f[n]; }; };\n"
	"event { id = 1; name = \"empty\"; fields := struct { struct { } a, b, c; u8 d[0]; }; };\n"
	"event { id = 2; name = \"nothing\"; fields := struct { u8 n; struct { } x[n][n][n]; }; };\n"
	"event { id = 1; stream_id = 1; };\n";

static void print(const struct ky_trace_reader *r)
{
	const struct ky_select all = KY_SELECT_ALL;
	struct ky_cursor *c;
	struct ky_format text = {.safe = true}, raw = {0};
	struct ky_buf out = {0};
	struct ky_values values = {0};
	struct ky_item item;

	if (ky_cursor_open(&c, r, &all, NULL) < 0)
		return;
	while (ky_cursor_next(c, &item, &values) > 0) {
		out.len = 0;
		if (item.kind == KY_ITEM_EVENT) {
			ky_format_text(&text, &out, &item);
			ky_format_text(&raw, &out, &item);
			ky_format_json(&raw, &out, &item);
		} else {
			ky_format_lost(&text, &out, &item);
		}
		values.n = 0;
	}
	ky_cursor_close(c);
	free(values.v);
	ky_buf_deinit(&out);
}

static void read_trace(const void *text, size_t text_size, const void *stream, size_t stream_size)
{
	struct ky_trace_reader *r;
	char why[256];

	if (ky_trace_reader_open_memory(
		    &r, text, text_size, stream, stream_size, NULL, why, sizeof(why)) < 0)
		return;
	print(r);
	ky_trace_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, 0, size);
	uint64_t begin = linear_begin();

	if (nul && nul - data > 20)
		read_trace(data, nul - data, nul + 1, size - (nul + 1 - data));
	else
		read_trace(metadata, strlen(metadata), data, size);
	linear_end(begin, size);
	return 0;
}
