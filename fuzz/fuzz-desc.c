/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes descriptions of events as applications make them, with any kinds of nested fields. If a
 * description passes the check, the reader must be able to read its metadata. Also uses any bytes
 * as a description.
 */
#include "ctf/tsdl.h"
#include "readable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct kymo_enum_label labels[] = {{"one", 1, 1}, {"two", 2, 9}};
static const struct kymo_enum_type type = {"type", labels, 2, 0};
static const char *const names[] = {
	"a", "b", "_a_length", "_a_tag", "_a_length_", "int", "none", "0"};

struct input {
	const uint8_t *data;
	size_t len;
	struct kymo_field pool[512];
	size_t n;
};

static uint8_t take(struct input *in)
{
	if (!in->len)
		return 0;
	in->len--;
	return *in->data++;
}

/* Creates a table of up to 7 fields. Each takes two bytes, and the bytes of its nested fields. */
static const struct kymo_field *make_fields(struct input *in)
{
	size_t n = take(in) % 8;
	struct kymo_field *fields = in->pool + in->n, *f = fields;

	if (n + 1 > KY_ARRAY_SIZE(in->pool) - in->n)
		return in->pool + KY_ARRAY_SIZE(in->pool) - 1; /* the end */
	in->n += n + 1;
	for (; f < fields + n; f++) {
		uint8_t kind = take(in), how = take(in);
		struct ky_desc_field basic = {.kind = kind % 17, .elem = kind / 17};

		*f = (struct kymo_field){.kind = basic.kind ? basic.kind : KYMO_FIELD_STRUCT,
			.elem = basic.elem,
			.size = (uint8_t)(1u << (how & 3)),
			.flags = how >> 2 & 7,
			.count = how >> 5,
			.name = names[(how >> 2) % KY_ARRAY_SIZE(names)]};
		basic.kind = f->kind;
		basic.kind = ky_field_basic_kind(&basic);
		if (basic.kind == KYMO_FIELD_ENUM)
			f->ext = &type;
		else if (basic.kind == KYMO_FIELD_MEDIA)
			f->ext = "image/\"png\"";
		else if (basic.kind == KYMO_FIELD_STRUCT || basic.kind == KYMO_FIELD_VARIANT)
			f->ext = make_fields(in);
	}
	return fields;
}

static void must_be_readable(struct ky_bytes desc)
{
	struct ky_tsdl_trace trace = {
		.hostname = "", .session = "", .boot_id = "", .machine_id = "", .product_uuid = ""};
	struct ky_buf text = {.max = 16u << 20};

	trace.clock.description = "clock";
	trace.clock.freq = 1000000000;
	ky_tsdl_trace(&text, &trace);
	ky_tsdl_stream(&text, 0, KY_SET_PER_CPU, false);
	ky_tsdl_event(&text, 0, 1, desc, NULL, 0);
	if (!text.error && !is_readable(text.data, text.len))
		abort();
	ky_buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t buf[1 << 16];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct input in = {.data = data, .len = size};
	struct kymo_event event = {.size = sizeof(event), .provider = "p", .name = "e"};
	struct ky_bytes desc = {data, (uint32_t)size};

	if (size && !ky_desc_check(desc, NULL))
		must_be_readable(desc);
	event.fields = make_fields(&in);
	ky_desc_encode(&w, &event);
	desc = (struct ky_bytes){buf, (uint32_t)w.len};
	if (!w.error && !ky_desc_check(desc, NULL))
		must_be_readable(desc);
	return 0;
}
