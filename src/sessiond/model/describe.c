/* SPDX-License-Identifier: MIT */
#include "sessiond/model/describe.h"

#include "base/loglevel.h"

/* A program's free text: plain characters only. */
static void put_plain(struct ky_buf *b, const char *s)
{
	for (; *s; s++)
		ky_buf_append(b, *s >= ' ' && *s < 0x7f ? s : "?", 1);
}

static void put_scalar(struct ky_buf *b, const struct ky_desc_field *f, uint8_t kind)
{
	static const char *const letters[] = {
		[KYMO_FIELD_INT] = "i", [KYMO_FIELD_UINT] = "u", [KYMO_FIELD_FLOAT] = "f"};

	switch (kind) {
	case KYMO_FIELD_INT:
	case KYMO_FIELD_UINT:
	case KYMO_FIELD_FLOAT:
		ky_buf_printf(b, "%s%d", letters[kind], f->size * 8);
		break;
	case KYMO_FIELD_BOOL:
		ky_buf_puts(b, "bool");
		break;
	case KYMO_FIELD_ENUM:
		ky_buf_puts(b, "enum ");
		put_plain(b, f->enum_name);
		break;
	default:
		ky_buf_puts(b, "string");
	}
	if (f->flags & KYMO_FIELD_HEX)
		ky_buf_puts(b, " hex");
	if (f->flags & KYMO_FIELD_NETWORK)
		ky_buf_puts(b, " network");
	if (f->flags & KYMO_FIELD_ASIDE)
		ky_buf_puts(b, " filter-only");
}

static void put_fields(struct ky_buf *b, struct ky_desc fields)
{
	const char *separator = "";
	struct ky_desc_field f;

	while (ky_desc_next_field(&fields, &f)) {
		ky_buf_puts(b, separator);
		describe_type(b, &f);
		ky_buf_printf(b, " %s", f.name);
		separator = ", ";
	}
}

static void put_basic(struct ky_buf *b, const struct ky_desc_field *f)
{
	const uint8_t kind = ky_field_basic_kind(f);

	if (kind != KYMO_FIELD_STRUCT && kind != KYMO_FIELD_VARIANT) {
		put_scalar(b, f, kind);
		return;
	}
	ky_buf_puts(b, kind == KYMO_FIELD_STRUCT ? "struct {" : "variant {");
	put_fields(b, ky_field_fields(f));
	ky_buf_puts(b, "}");
}

void describe_type(struct ky_buf *b, const struct ky_desc_field *f)
{
	switch (f->kind) {
	case KYMO_FIELD_ARRAY:
		put_basic(b, f);
		ky_buf_printf(b, "[%u]", f->count);
		break;
	case KYMO_FIELD_SEQUENCE:
		put_basic(b, f);
		ky_buf_puts(b, "[]");
		break;
	case KYMO_FIELD_TEXT:
		ky_buf_printf(b, "text[%u]", f->count);
		break;
	case KYMO_FIELD_TEXT_SEQUENCE:
		ky_buf_puts(b, "text");
		break;
	case KYMO_FIELD_BLOB:
		ky_buf_puts(b, "blob");
		break;
	default:
		put_basic(b, f);
	}
}

void describe_event(struct ky_buf *b, struct ky_bytes desc)
{
	struct ky_desc d;

	ky_desc_open(&d, desc);
	ky_buf_printf(b, "%s (", ky_loglevel_names[d.loglevel]);
	put_fields(b, d);
	ky_buf_puts(b, ")");
}
