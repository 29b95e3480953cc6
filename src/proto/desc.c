/* SPDX-License-Identifier: MIT */
#include "proto/desc.h"

static void encode_labels(struct ky_writer *w, const struct kymo_enum_type *e)
{
	uint64_t next = 0;

	ky_write_str(w, e->name);
	ky_write_u32(w, e->n_labels);
	for (uint32_t i = 0; i < e->n_labels; i++) {
		struct kymo_enum_label l = e->labels[i];
		const struct kymo_enum_label automatic = {NULL, KYMO_LABEL_AUTO};

		if (l.lo == automatic.lo && l.hi == automatic.hi)
			l.lo = l.hi = next;
		next = l.hi + 1;
		ky_write_str(w, l.label);
		ky_write_u64(w, l.lo);
		ky_write_u64(w, l.hi);
	}
}

static void encode_fields(struct ky_writer *w, const struct kymo_field *fields);

static void encode_field(struct ky_writer *w, const struct kymo_field *f)
{
	const struct kymo_enum_label media = {f->ext, 0, 0};
	const struct kymo_enum_type media_type = {"media_type", &media, 1, 0};
	const struct kymo_enum_type *e = f->kind == KYMO_FIELD_MEDIA ? &media_type : f->ext;
	const uint8_t kind = f->kind == KYMO_FIELD_MEDIA ? KYMO_FIELD_ENUM : f->kind;
	const uint8_t basic = ky_field_basic_kind(
		&(struct ky_desc_field){.kind = kind, .elem = f->elem});

	ky_write_u8(w, kind);
	ky_write_u8(w, f->elem);
	ky_write_u8(w, f->size);
	ky_write_u8(
		w, f->flags | (basic == KYMO_FIELD_ENUM && e->is_signed ? KYMO_FIELD_SIGNED : 0));
	ky_write_u32(w, f->count);
	ky_write_str(w, f->name);
	if (basic == KYMO_FIELD_ENUM)
		encode_labels(w, e);
	else if (basic == KYMO_FIELD_STRUCT || basic == KYMO_FIELD_VARIANT)
		encode_fields(w, f->ext);
}

/* Their number, and each with its length. */
static void encode_fields(struct ky_writer *w, const struct kymo_field *fields)
{
	const struct kymo_field *f;
	uint32_t n = 0;

	for (f = fields; f->kind != KYMO_FIELD_END; f++)
		n++;
	ky_write_u32(w, n);
	for (f = fields; f->kind != KYMO_FIELD_END && !w->error; f++) {
		size_t at = w->len;
		uint32_t len;

		ky_write_u32(w, 0);
		encode_field(w, f);
		if (w->error)
			return;
		len = (uint32_t)(w->len - at - sizeof(len));
		memcpy(w->buf + at, &len, sizeof(len));
	}
}

void ky_desc_encode(struct ky_writer *w, const struct kymo_event *ev)
{
	const struct kymo_probe_event *p = ky_event_with_probe(ev);

	ky_write_str(w, ev->provider);
	ky_write_str(w, ev->name);
	ky_write_i32(w, ky_event_loglevel(ev));
	encode_fields(w, ev->fields);
	if (p && p->model_emf_uri && **p->model_emf_uri)
		ky_write_str(w, *p->model_emf_uri);
}

void ky_desc_open(struct ky_desc *d, struct ky_bytes bytes)
{
	struct ky_reader r = {.buf = bytes.data, .len = bytes.len};

	d->provider = ky_read_str(&r);
	d->name = ky_read_str(&r);
	d->loglevel = ky_read_i32(&r);
	d->n_fields = ky_read_u32(&r);
	d->fields = r;
}

static void open_field(struct ky_desc_field *f, struct ky_bytes bytes)
{
	struct ky_reader r = {.buf = bytes.data, .len = bytes.len};

	memset(f, 0, sizeof(*f));
	f->kind = ky_read_u8(&r);
	f->elem = ky_read_u8(&r);
	f->size = ky_read_u8(&r);
	f->flags = ky_read_u8(&r);
	f->count = ky_read_u32(&r);
	f->name = ky_read_str(&r);
	f->enum_name = "";
	switch (ky_field_basic_kind(f)) {
	case KYMO_FIELD_ENUM:
		f->enum_name = ky_read_str(&r);
		f->n_labels = ky_read_u32(&r);
		break;
	case KYMO_FIELD_STRUCT:
	case KYMO_FIELD_VARIANT:
		f->n_fields = ky_read_u32(&r);
		break;
	default:
		break;
	}
	f->rest = r;
}

bool ky_desc_next_field(struct ky_desc *d, struct ky_desc_field *f)
{
	struct ky_bytes bytes;

	if (d->fields.error || !d->n_fields)
		return false;
	d->n_fields--;
	bytes = ky_read_bytes(&d->fields);
	if (d->fields.error)
		return false;
	open_field(f, bytes);
	return true;
}

const char *ky_desc_model_emf_uri(struct ky_desc *d)
{
	return d->fields.pos < d->fields.len ? ky_read_str(&d->fields) : "";
}

bool ky_field_next_label(struct ky_desc_field *f, struct kymo_enum_label *label)
{
	if (f->rest.error || f->rest.pos == f->rest.len)
		return false;
	label->label = ky_read_str(&f->rest);
	label->lo = ky_read_u64(&f->rest);
	label->hi = ky_read_u64(&f->rest);
	return !f->rest.error;
}

struct ky_desc ky_field_fields(const struct ky_desc_field *f)
{
	return (struct ky_desc){
		.provider = "", .name = f->name, .n_fields = f->n_fields, .fields = f->rest};
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool ky_desc_name_char(char c)
{
	return is_alpha(c) || is_digit(c) || (c && strchr("_.-:", c));
}

bool ky_desc_name_valid(const char *s)
{
	size_t n = strlen(s);

	if (!n || n > KY_NAME_MAX - 2)
		return false;
	for (; *s; s++)
		if (!ky_desc_name_char(*s))
			return false;
	return true;
}

/* It may begin with a digit: an underscore precedes it in TSDL. */
static bool field_name_valid(const char *s)
{
	if (!*s || strlen(s) > KY_NAME_MAX)
		return false;
	for (; *s; s++)
		if (!is_alpha(*s) && !is_digit(*s) && *s != '_')
			return false;
	return true;
}

static bool scalar_valid(uint8_t kind, uint8_t size)
{
	switch (kind) {
	case KYMO_FIELD_INT:
	case KYMO_FIELD_UINT:
	case KYMO_FIELD_ENUM:
		return size == 1 || size == 2 || size == 4 || size == 8;
	case KYMO_FIELD_FLOAT:
		return size == 4 || size == 8;
	case KYMO_FIELD_BOOL:
		return size == 1;
	case KYMO_FIELD_STRING:
		return true;
	default:
		return false;
	}
}

static const char *check_labels(struct ky_desc_field *f)
{
	struct kymo_enum_label label;
	uint32_t n = 0;

	if (!f->n_labels || f->n_labels > KY_LABELS_MAX)
		return "an enumeration has no labels, or too many";
	while (ky_field_next_label(f, &label)) {
		n++;
		if (strlen(label.label) > KY_NAME_MAX)
			return "a label of an enumeration is too long";
		if (f->flags & KYMO_FIELD_SIGNED ? (int64_t)label.lo > (int64_t)label.hi
						 : label.lo > label.hi)
			return "a range of an enumeration is empty";
	}
	return f->rest.error || n != f->n_labels ? "the description of an enumeration is incomplete"
						 : NULL;
}

static const char *check_fields(struct ky_desc *d, unsigned depth, uint32_t *n_left);

/* The fields of a field. */
static const char *check_inner(const struct ky_desc_field *f, unsigned depth, uint32_t *n_left)
{
	struct ky_desc inner = ky_field_fields(f);

	if (depth == KY_DEPTH_MAX)
		return "structures are nested too deeply";
	if (!inner.n_fields)
		return "a structure or variant has no fields";
	return check_fields(&inner, depth + 1, n_left);
}

static const char *check_kind(const struct ky_desc_field *f)
{
	switch (f->kind) {
	case KYMO_FIELD_ARRAY:
	case KYMO_FIELD_SEQUENCE:
		if (f->elem != KYMO_FIELD_STRUCT && !scalar_valid(f->elem, f->size))
			return "an array's elements are of an unknown kind or size";
		if (f->kind == KYMO_FIELD_ARRAY && !f->count)
			return "an array has no elements";
		return NULL;
	case KYMO_FIELD_TEXT:
		return f->count ? NULL : "a text array has no elements";
	case KYMO_FIELD_TEXT_SEQUENCE:
	case KYMO_FIELD_BLOB:
	case KYMO_FIELD_STRUCT:
	case KYMO_FIELD_VARIANT:
		return NULL;
	default:
		return scalar_valid(f->kind, f->size) ? NULL
						      : "a field is of an unknown kind or size";
	}
}

static const char *check_field(struct ky_desc_field *f, unsigned depth, uint32_t *n_left)
{
	const char *why;

	if (f->rest.error)
		return "the description of a field is incomplete";
	if (!field_name_valid(f->name))
		return "a field's name is empty, too long, or has other characters than letters, digits and underscores";
	why = check_kind(f);
	if (why)
		return why;
	switch (ky_field_basic_kind(f)) {
	case KYMO_FIELD_ENUM:
		return check_labels(f);
	case KYMO_FIELD_STRUCT:
	case KYMO_FIELD_VARIANT:
		return check_inner(f, depth, n_left);
	default:
		return NULL;
	}
}

/* A field's name, and its place among the fields. */
struct place {
	const char *name;
	uint32_t index;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct place *)a)->name, ((const struct place *)b)->name);
}

/* Sorted, so that the time is not quadratic in what an application sends. */
static const char *check_names(struct place *places, uint32_t n)
{
	qsort(places, n, sizeof(*places), compare_names);
	for (uint32_t i = 1; i < n; i++)
		if (!strcmp(places[i - 1].name, places[i].name))
			return "two fields have the same name";
	for (uint32_t i = 0; i < n; i++) {
		const struct place like = {.name = places[i].name + 1}, *plain;

		if (*places[i].name != '_')
			continue;
		plain = bsearch(&like, places, n, sizeof(*places), compare_names);
		if (plain && plain->index > places[i].index)
			return "a field has the name of one before it, but for an underscore: babeltrace2 would take them for the same";
	}
	return NULL;
}

/* n_left: how many fields the event may still have. */
static const char *check_fields(struct ky_desc *d, unsigned depth, uint32_t *n_left)
{
	struct place places[KY_FIELDS_MAX];
	const char *why = NULL;
	struct ky_desc_field f;
	bool filter_only = false;
	uint32_t n = 0;

	if (d->n_fields > *n_left)
		return "the event has too many fields";
	*n_left -= d->n_fields;
	while (!why && ky_desc_next_field(d, &f)) {
		why = check_field(&f, depth, n_left);
		if (f.flags & KYMO_FIELD_ASIDE)
			filter_only = true;
		else if (filter_only && !why)
			why = "a field that is recorded comes behind one that is not";
		if (filter_only && depth && !why)
			why = "a field in a field is for filters only";
		places[n] = (struct place){f.name, n};
		n++;
	}
	if (!why && (d->fields.error || d->n_fields))
		why = "the description is incomplete";
	return why ? why : check_names(places, n);
}

int ky_desc_check(struct ky_bytes bytes, const char **ret_why)
{
	uint32_t n_left = KY_FIELDS_MAX;
	const char *why = NULL;
	struct ky_desc d;

	ky_desc_open(&d, bytes);
	if (d.fields.error)
		why = "the description is incomplete";
	else if (d.n_fields == KY_DESC_TOO_LARGE && ky_desc_name_valid(d.name))
		why = "its description has more than 64,512 bytes (labels of enumerations?)";
	else if (!ky_desc_name_valid(d.provider) || strchr(d.provider, ':'))
		why = "the provider's name is empty, too long, or has a character other than letters, digits, _ . -";
	else if (!ky_desc_name_valid(d.name))
		why = "the event's name is empty, too long, or has a character other than letters, digits, _ . - :";
	else if (strlen(d.provider) + 1 + strlen(d.name) > KY_NAME_MAX)
		why = "the names of provider and event are longer than 254 characters together";
	else if (d.loglevel < KYMO_EMERG || d.loglevel > KYMO_DEBUG)
		why = "the log level is unknown";
	else
		why = check_fields(&d, 0, &n_left);
	if (!why && strlen(ky_desc_model_emf_uri(&d)) > KY_URI_MAX)
		why = "the URI of its model is too long";
	if (!why && (d.fields.error || d.fields.pos != d.fields.len))
		why = "the description has more than it says";
	if (why && ret_why)
		*ret_why = why;
	return why ? -EBADMSG : 0;
}
