/* SPDX-License-Identifier: MIT */
/*
 * Reads a whole trace to its end and formats it as text and as JSON. The input is metadata, a NUL,
 * and the bytes of one stream. An input without a NUL is a stream of a trace with every kind of
 * field. Formats that use the bytes of scopes write the same as those that use values; if not, the
 * first lines that differ are shown.
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
	"event { id = 0; stream_id = 0; name = \"all\"; fields := struct { u8 n; string s; u8 seq[n]; string strings[n];\n"
	"	struct { u8 m; integer { size = 3; signed = true; base = 8; } bits[m]; } structs[n];\n"
	"	enum tag : integer { size = 3; } { a, b, c = 2 ... 5, d = 4 } tag;\n"
	"	variant <tag> { struct { } a; string b; u8 c[3]; integer { size = 64; align = 1; base = 2; } d; } v;\n"
	"	struct { } nothing[n]; u8 grid[n][n];\n"
	"	integer { size = 8; align = 8; encoding = UTF8; } text[n];\n"
	"	floating_point { exp_dig = 8; mant_dig = 24; byte_order = be; } f[n]; }; };\n"
	"event { id = 1; stream_id = 0; name = \"empty\"; fields := struct { struct { } a, b, c; u8 d[0]; }; };\n"
	"event { id = 2; stream_id = 0; name = \"nothing\"; fields := struct { u8 n; struct { } x[n][n][n]; }; };\n"
	"event { id = 3; stream_id = 0; name = \"plain\"; fields := struct { u8 n;\n"
	"	integer { size = 32; align = 8; signed = true; } i; string s;\n"
	"	integer { size = 8; align = 8; encoding = UTF8; } t[9];\n"
	"	floating_point { exp_dig = 11; mant_dig = 53; align = 8; } f;\n"
	"	integer { size = 64; align = 8; base = 16; byte_order = be; } x; string a_longer_name; }; };\n"
	"event { id = 1; stream_id = 1; };\n";

/* One reading of a trace. */
struct printing {
	struct ky_cursor *cursor;
	struct ky_format text, raw;
	struct ky_values values;
	struct ky_buf line; /* of the last item */
};

static bool begin(struct printing *p, const struct ky_trace_reader *r, const uint8_t *wanted)
{
	struct ky_select all = KY_SELECT_ALL;

	*p = (struct printing){.text.safe = true};
	all.wanted = wanted;
	return !ky_cursor_open(&p->cursor, r, &all, NULL);
}

/* Prints the next item; nothing at the end. */
static void print_next(struct printing *p)
{
	struct ky_item item;

	p->line.len = 0;
	p->values.n = 0;
	if (ky_cursor_next(p->cursor, &item, &p->values) <= 0)
		return;
	if (item.kind == KY_ITEM_EVENT) {
		ky_format_text(&p->text, &p->line, &item);
		ky_format_text(&p->raw, &p->line, &item);
		ky_format_json(&p->raw, &p->line, &item);
	} else {
		ky_format_lost(&p->text, &p->line, &item);
	}
}

static void end(struct printing *p)
{
	ky_cursor_close(p->cursor);
	free(p->values.v);
	ky_buf_deinit(&p->line);
}

static void check_equal(const struct ky_buf *values, const struct ky_buf *bytes)
{
	if (values->len == bytes->len &&
		(!bytes->len || !memcmp(values->data, bytes->data, bytes->len)))
		return;
	fprintf(stderr, "from values: %.*s\nfrom bytes: %.*s\n", (int)values->len, values->data,
		(int)bytes->len, bytes->data);
	abort();
}

static bool read_trace(const void *text, size_t text_size, const void *stream, size_t stream_size)
{
	struct printing values, bytes;
	struct ky_trace_reader *r;
	uint8_t *wanted;
	char why[256];

	if (ky_trace_reader_open_memory(
		    &r, text, text_size, stream, stream_size, NULL, why, sizeof(why)) < 0)
		return false;
	wanted = malloc(r->n_classes + 1);
	if (!wanted)
		abort();
	memset(wanted, KY_WANT_EVENT | KY_WANT_VALUES | KY_WANT_LINE, r->n_classes + 1);
	if (!begin(&values, r, NULL) || !begin(&bytes, r, wanted))
		abort();
	do {
		print_next(&values);
		print_next(&bytes);
		check_equal(&values.line, &bytes.line);
	} while (values.line.len);
	end(&values);
	end(&bytes);
	free(wanted);
	ky_trace_reader_close(r);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, 0, size);
	uint64_t begin = linear_begin();

	if (nul && nul - data > 20)
		read_trace(data, nul - data, nul + 1, size - (nul + 1 - data));
	else if (!read_trace(metadata, strlen(metadata), data, size))
		abort();
	linear_end(begin, size);
	return 0;
}
