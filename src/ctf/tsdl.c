/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl.h"

#include <inttypes.h>
#include <sys/utsname.h>

/* Room for the name of a field that belongs to another: "_NAME_length" and what makes it unique. */
#define COMPANION_NAME_MAX (KY_NAME_MAX + 64)

static void put_uuid(struct ky_buf *b, const uint8_t u[16])
{
	ky_buf_printf(b, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
		u[13], u[14], u[15]);
}

/* A string literal. UTF-8 stays as it is; control characters become three octal digits, as in C. */
static void put_string(struct ky_buf *b, const char *s)
{
	ky_buf_puts(b, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			ky_buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			ky_buf_printf(b, "\\%03o", c);
		else
			ky_buf_append(b, s, 1);
	}
	ky_buf_puts(b, "\"");
}

void ky_tsdl_comment(struct ky_buf *b, const char *text, bool gap)
{
	ky_buf_puts(b, gap ? KY_TSDL_GAP : "/* ");
	for (; *text; text++)
		ky_buf_append(b, *text == '*' || *text == '\n' ? "?" : text, 1);
	ky_buf_puts(b, " */\n\n");
}

static void put_member(struct ky_buf *b, unsigned bits, unsigned align, const char *name)
{
	ky_buf_printf(
		b, "\t\tinteger { size = %u; align = %u; signed = 0; } %s;\n", bits, align, name);
}

static void put_packet_header(struct ky_buf *b)
{
	ky_buf_puts(b, "\tpacket.header := struct {\n"
		       "\t\tinteger { size = 32; align = 8; signed = 0; base = 16; } magic;\n");
	put_member(b, 8, 8, "uuid[16]");
	put_member(b, 32, 8, "stream_id");
	put_member(b, 64, 8, "stream_instance_id");
	ky_buf_puts(b, "\t};\n");
}

static void put_user_tracer(struct ky_buf *b)
{
	unsigned major = 0, minor = 0, patch = 0;

	sscanf(KYMO_VERSION, "%u.%u.%u", &major, &minor, &patch);
	ky_buf_printf(b,
		";\n\tdomain = \"ust\";\n\ttracer_name = \"kymo\";\n\ttracer_major = %u;\n"
		"\ttracer_minor = %u;\n\ttracer_patch = %u",
		major, minor, patch);
}

/*
 * Trace Compass and lttng-analyses choose the names that they expect by the tracer's name and
 * version; events and fields are called as that one's.
 */
static void put_kernel_tracer(struct ky_buf *b)
{
	struct utsname u = {0};

	uname(&u);
	ky_buf_puts(b, ";\n\tdomain = \"kernel\";\n\tsysname = ");
	put_string(b, u.sysname);
	ky_buf_puts(b, ";\n\tkernel_release = ");
	put_string(b, u.release);
	ky_buf_puts(b, ";\n\tkernel_version = ");
	put_string(b, u.version);
	ky_buf_puts(b, ";\n\ttracer_name = \"lttng-modules\";\n\ttracer_major = 2;\n"
		       "\ttracer_minor = 13;\n\ttracer_patchlevel = 0;\n"
		       "\trecorded_by = \"kymo\";\n\tkymo_version = ");
	put_string(b, KYMO_VERSION);
}

static void put_env(struct ky_buf *b, const struct ky_tsdl_trace *t)
{
	ky_buf_puts(b, "env {\n\thostname = ");
	put_string(b, t->hostname);
	if (t->kernel)
		put_kernel_tracer(b);
	else
		put_user_tracer(b);
	ky_buf_puts(b, ";\n\tsession = ");
	put_string(b, t->session);
	if (!t->kernel)
		ky_buf_printf(
			b, ";\n\tuid = %" PRIu32 ";\n\tabi_bits = %" PRIu32, t->uid, t->abi_bits);
	ky_buf_puts(b, ";\n\tboot_id = ");
	put_string(b, t->boot_id);
	ky_buf_puts(b, ";\n\tmachine_id = ");
	put_string(b, t->machine_id);
	ky_buf_puts(b, ";\n\tproduct_uuid = ");
	put_string(b, t->product_uuid);
	ky_buf_puts(b, ";\n};\n\n");
}

static void put_clock(
	struct ky_buf *b, const struct ky_clock_info *c, const char *boot_id, bool absolute)
{
	ky_buf_puts(b, "clock {\n\tname = \"kymo_clock\";\n");
	if (*boot_id) {
		ky_buf_puts(b, "\tuuid = ");
		put_string(b, boot_id);
		ky_buf_puts(b, ";\n");
	}
	ky_buf_puts(b, "\tdescription = ");
	put_string(b, c->description);
	ky_buf_printf(b,
		";\n\tfreq = %" PRIu64 ";\n\tprecision = 0;\n\toffset_s = %" PRId64
		";\n\toffset = %" PRIu64 ";\n\tabsolute = %s;\n};\n\n",
		c->freq, c->offset_s, c->offset, absolute ? "TRUE" : "FALSE");
}

void ky_tsdl_trace(struct ky_buf *b, const struct ky_tsdl_trace *t)
{
	ky_buf_puts(b, "/* CTF 1.8 */\n\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"");
	put_uuid(b, t->uuid);
	ky_buf_puts(b, "\";\n\tbyte_order = le;\n");
	put_packet_header(b);
	ky_buf_puts(b, "};\n\n");
	put_env(b, t);
	put_clock(b, &t->clock, t->boot_id, t->absolute_clock);
	ky_buf_puts(b,
		"typealias integer { size = 27; align = 1; signed = 0; map = clock.kymo_clock.value; }"
		" := uint27_clock_t;\n"
		"typealias integer { size = 64; align = 8; signed = 0; map = clock.kymo_clock.value; }"
		" := uint64_clock_t;\n\n"
		"struct event_header {\n"
		"\tenum : integer { size = 5; align = 1; signed = 0; }"
		" { compact = 0 ... 30, extended = 31 } id;\n"
		"\tvariant <id> {\n"
		"\t\tstruct { uint27_clock_t timestamp; } compact;\n"
		"\t\tstruct { integer { size = 32; align = 8; signed = 0; } id;"
		" uint64_clock_t timestamp; } extended;\n"
		"\t} v;\n"
		"} align(8);\n\n");
}

void ky_tsdl_stream(struct ky_buf *b, uint32_t stream_id, uint32_t mode, bool named)
{
	ky_buf_printf(b,
		"stream {\n\tid = %" PRIu32 ";\n\tevent.header := struct event_header;\n"
		"\tpacket.context := struct {\n",
		stream_id);
	if (mode == KY_SET_PER_CPU)
		put_member(b, 32, 8, "cpu_id");
	else
		ky_buf_puts(b, "\t\tinteger { size = 32; align = 8; signed = 1; } vpid;\n");
	if (named)
		ky_buf_puts(b,
			"\t\tinteger { size = 32; align = 8; signed = 1; } vtid;\n"
			"\t\tinteger { size = 8; align = 8; signed = 0; encoding = UTF8; } procname[16];\n");
	ky_buf_puts(b,
		"\t\tinteger { size = 64; align = 256; signed = 0; map = clock.kymo_clock.value; } timestamp_begin;\n"
		"\t\tuint64_clock_t timestamp_end;\n");
	put_member(b, 64, 256, "content_size");
	put_member(b, 64, 8, "packet_size");
	put_member(b, 64, 8, "packet_seq_num");
	put_member(b, 64, 8, "events_discarded");
	ky_buf_puts(b, "\t} align(256);\n};\n\n");
}

static void put_integer(struct ky_buf *b, unsigned size, bool is_signed, unsigned flags)
{
	ky_buf_printf(b, "integer { size = %u; align = 8; signed = %d; base = %d;%s }", size * 8,
		is_signed, flags & KYMO_FIELD_HEX ? 16 : 10,
		flags & KYMO_FIELD_NETWORK ? " byte_order = be;" : "");
}

static void put_float(struct ky_buf *b, unsigned size, unsigned flags)
{
	ky_buf_printf(b, "floating_point { exp_dig = %d; mant_dig = %d; align = 8;%s }",
		size == 4 ? 8 : 11, size == 4 ? 24 : 53,
		flags & KYMO_FIELD_NETWORK ? " byte_order = be;" : "");
}

static void put_bound(struct ky_buf *b, uint64_t v, bool is_signed)
{
	if (is_signed)
		ky_buf_printf(b, "%" PRId64, (int64_t)v);
	else
		ky_buf_printf(b, "%" PRIu64, v);
}

static void put_enum(struct ky_buf *b, const struct ky_desc_field *f)
{
	struct ky_desc_field walk = *f;
	struct kymo_enum_label label;
	bool is_signed = f->flags & KYMO_FIELD_SIGNED;
	const char *separator = "";

	ky_buf_puts(b, "enum : ");
	put_integer(b, f->size, is_signed, f->flags);
	ky_buf_puts(b, " { ");
	while (ky_field_next_label(&walk, &label)) {
		ky_buf_puts(b, separator);
		put_string(b, label.label);
		ky_buf_puts(b, " = ");
		put_bound(b, label.lo, is_signed);
		if (label.hi != label.lo) {
			ky_buf_puts(b, " ... ");
			put_bound(b, label.hi, is_signed);
		}
		separator = ", ";
	}
	ky_buf_puts(b, " }");
}

/* The type of a scalar field, or of an array's element. */
static void put_scalar(struct ky_buf *b, const struct ky_desc_field *f, uint8_t kind)
{
	switch (kind) {
	case KYMO_FIELD_INT:
	case KYMO_FIELD_UINT:
		put_integer(b, f->size, kind == KYMO_FIELD_INT, f->flags);
		break;
	case KYMO_FIELD_BOOL:
		put_integer(b, 1, false, 0);
		break;
	case KYMO_FIELD_FLOAT:
		put_float(b, f->size, f->flags);
		break;
	case KYMO_FIELD_ENUM:
		put_enum(b, f);
		break;
	case KYMO_FIELD_TEXT:
	case KYMO_FIELD_TEXT_SEQUENCE:
		ky_buf_puts(b,
			"integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; }");
		break;
	case KYMO_FIELD_BLOB:
		put_integer(b, 1, false, KYMO_FIELD_HEX);
		break;
	default:
		ky_buf_puts(b, "string { encoding = UTF8; }");
	}
}

/*
 * Whether one of the fields has this name, with or without an underscore before it. babeltrace2
 * confuses names that differ only in that.
 */
static bool has_field(struct ky_desc siblings, const char *name)
{
	struct ky_desc_field f;

	while (ky_desc_next_field(&siblings, &f))
		if (!strcmp(f.name, name) || (*name == '_' && !strcmp(f.name, name + 1)) ||
			(*f.name == '_' && !strcmp(f.name + 1, name)))
			return true;
	return false;
}

/*
 * Appends underscores to the name until no other field has it. (TSDL also has one before every
 * name, which readers take away; it is left out here.)
 */
static const char *make_unique(char name[COMPANION_NAME_MAX], const struct ky_desc *siblings)
{
	size_t n = strlen(name);

	while (has_field(*siblings, name) && n < COMPANION_NAME_MAX - 1) {
		name[n++] = '_';
		name[n] = '\0';
	}
	return name;
}

/* "_NAME_length" and the like. */
static const char *companion_name(char buf[COMPANION_NAME_MAX], const struct ky_desc *siblings,
	const char *name, const char *what)
{
	snprintf(buf, COMPANION_NAME_MAX, "_%s_%s", name, what);
	return make_unique(buf, siblings);
}

static void put_indent(struct ky_buf *b, int depth)
{
	for (; depth; depth--)
		ky_buf_puts(b, "\t");
}

static void put_fields(struct ky_buf *b, const struct ky_desc *siblings, int depth);

static void put_struct(struct ky_buf *b, const struct ky_desc *fields, int depth)
{
	ky_buf_puts(b, "struct {\n");
	put_fields(b, fields, depth + 1);
	put_indent(b, depth);
	ky_buf_puts(b, "}");
}

static bool has_length(const struct ky_desc_field *f)
{
	return f->kind == KYMO_FIELD_SEQUENCE || f->kind == KYMO_FIELD_TEXT_SEQUENCE ||
	       f->kind == KYMO_FIELD_BLOB;
}

static void put_tag(struct ky_buf *b, const struct ky_desc_field *f, const char *name, int depth)
{
	struct ky_desc options = ky_field_fields(f);
	char none[COMPANION_NAME_MAX] = "none";
	struct ky_desc_field option;
	uint32_t n = 0;

	make_unique(none, &options);
	put_indent(b, depth);
	ky_buf_puts(b, "enum : integer { size = 8; align = 8; signed = 0; base = 10; } { ");
	while (ky_desc_next_field(&options, &option))
		ky_buf_printf(b, "\"_%s\" = %" PRIu32 ", ", option.name, n++);
	ky_buf_printf(b, "\"%s\" = %" PRIu32 " ... 255 } _%s;\n", none, n, name);
}

static void put_field(
	struct ky_buf *b, const struct ky_desc *siblings, const struct ky_desc_field *f, int depth);

/* An option with a length or a tag before it is a structure of both. */
static void put_variant(struct ky_buf *b, const struct ky_desc_field *f, const char *tag, int depth)
{
	struct ky_desc options = ky_field_fields(f), alone = {.n_fields = 0};
	char none[COMPANION_NAME_MAX] = "none";
	struct ky_desc_field option;

	make_unique(none, &options);
	ky_buf_printf(b, "variant <_%s> {\n", tag);
	while (ky_desc_next_field(&options, &option)) {
		bool wrapped = has_length(&option) || option.kind == KYMO_FIELD_VARIANT;

		if (wrapped) {
			put_indent(b, depth + 1);
			ky_buf_puts(b, "struct {\n");
		}
		put_field(b, &alone, &option, depth + 1 + wrapped);
		if (wrapped) {
			put_indent(b, depth + 1);
			ky_buf_printf(b, "} _%s;\n", option.name);
		}
	}
	put_indent(b, depth + 1);
	ky_buf_printf(b, "struct { } %s;\n", none);
	put_indent(b, depth);
	ky_buf_puts(b, "}");
}

/* Writes the type of a field, up to the field's name. */
static void put_type(
	struct ky_buf *b, const struct ky_desc_field *f, const char *companion, int depth)
{
	struct ky_desc fields = ky_field_fields(f);
	const uint8_t kind = ky_field_basic_kind(f);

	if (kind == KYMO_FIELD_STRUCT)
		put_struct(b, &fields, depth);
	else if (kind == KYMO_FIELD_VARIANT)
		put_variant(b, f, companion, depth);
	else
		put_scalar(b, f, kind);
}

static void put_field(
	struct ky_buf *b, const struct ky_desc *siblings, const struct ky_desc_field *f, int depth)
{
	char companion[COMPANION_NAME_MAX] = "";

	if (has_length(f)) {
		put_indent(b, depth);
		put_integer(b, 4, false, 0);
		ky_buf_printf(b, " _%s;\n", companion_name(companion, siblings, f->name, "length"));
	} else if (f->kind == KYMO_FIELD_VARIANT) {
		put_tag(b, f, companion_name(companion, siblings, f->name, "tag"), depth);
	}
	put_indent(b, depth);
	put_type(b, f, companion, depth);
	ky_buf_printf(b, " _%s", f->name);
	if (has_length(f))
		ky_buf_printf(b, "[ _%s ]", companion);
	else if (f->kind == KYMO_FIELD_ARRAY || f->kind == KYMO_FIELD_TEXT)
		ky_buf_printf(b, "[%" PRIu32 "]", f->count);
	ky_buf_puts(b, ";\n");
}

static void put_fields(struct ky_buf *b, const struct ky_desc *siblings, int depth)
{
	struct ky_desc d = *siblings;
	struct ky_desc_field f;

	while (ky_desc_next_field(&d, &f))
		if (!(f.flags & KYMO_FIELD_ASIDE))
			put_field(b, siblings, &f, depth);
}

static void put_context(struct ky_buf *b, const struct ky_context *c)
{
	const struct ky_ctx_type *t = c->type;
	const struct ky_desc_field f = {.kind = t->field,
		.elem = t->elem,
		.size = t->size,
		.flags = t->flags,
		.count = t->kind == KY_CTX_CALLSTACK ? ky_ctx_depth(c->argument) : t->count,
		.name = c->name};

	put_field(b, &(struct ky_desc){.n_fields = 0}, &f, 2);
}

void ky_tsdl_event(struct ky_buf *b, uint32_t stream_id, uint32_t id, struct ky_bytes desc,
	const struct ky_context *contexts, uint32_t n_contexts)
{
	struct ky_desc d;
	struct ky_desc_field f;
	const char *uri;

	ky_desc_open(&d, desc);
	ky_buf_printf(b,
		"event {\n\tname = \"%s%s%s\";\n\tid = %" PRIu32 ";\n\tstream_id = %" PRIu32 ";\n",
		d.provider, *d.provider ? ":" : "", d.name, id, stream_id);
	if (*d.provider)
		ky_buf_printf(b, "\tloglevel = %" PRId32 ";\n", d.loglevel);
	if (n_contexts)
		ky_buf_puts(b, "\tcontext := struct {\n");
	for (uint32_t i = 0; i < n_contexts; i++)
		put_context(b, &contexts[i]);
	if (n_contexts)
		ky_buf_puts(b, "\t};\n");
	ky_buf_puts(b, "\tfields := struct {\n");
	put_fields(b, &d, 2);
	ky_buf_puts(b, "\t};\n");
	while (ky_desc_next_field(&d, &f))
		; /* to what comes behind them */
	uri = ky_desc_model_emf_uri(&d);
	if (*uri) {
		ky_buf_puts(b, "\tmodel.emf.uri = ");
		put_string(b, uri);
		ky_buf_puts(b, ";\n");
	}
	ky_buf_puts(b, "};\n\n");
}
