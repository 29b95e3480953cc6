/* SPDX-License-Identifier: MIT */
/* Field classes of CTF 2, as types. */
#include "reader/ctf2-parse.h"

#include "reader/types.h"

/* The owner of the names of aliases. */
static const char alias_space;

static const struct ky_type character = {
	.kind = KY_TYPE_INT, .size = 8, .base = 10, .align = 8, .is_text = true};
static const struct ky_type byte = {.kind = KY_TYPE_INT, .size = 8, .base = 16, .align = 8};

static void parse_byte_order(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	const char *order = ky_ctf2_text(p, o, "byte-order"),
		   *bits = ky_ctf2_text(p, o, "bit-order");
	const char *natural = "first-to-last";

	if (order && !strcmp(order, "little-endian")) {
		t->byte_order = KY_ORDER_LE;
	} else if (order && !strcmp(order, "big-endian")) {
		t->byte_order = KY_ORDER_BE;
		natural = "last-to-first";
	} else {
		ky_ctf2_fail(p, "a field needs a byte order: little-endian or big-endian");
		return;
	}
	if (bits && strcmp(bits, natural))
		ky_ctf2_fail(p, "the bit order '%.32s' with the byte order '%s' is not supported",
			bits, order);
}

static void parse_length(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->size = (uint8_t)ky_ctf2_number(p, o, "length", 0, 64);
	t->align = ky_ctf2_align(p, o, "alignment", 1);
	parse_byte_order(p, o, t);
	if (!t->size)
		ky_ctf2_fail(p, "a fixed length must be of 1 to 64 bits");
}

static void parse_base(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->base = (uint8_t)ky_ctf2_number(p, o, "preferred-display-base", 10, 16);
	if (t->base != 2 && t->base != 8 && t->base != 10 && t->base != 16)
		ky_ctf2_fail(p, "'preferred-display-base' is not 2, 8, 10 or 16");
}

struct ranges {
	struct ky_range *v;
	size_t n, cap;
};

/*
 * Parses [LO, HI]. Returns false if no value of the type is in it. type: NULL for a selector, whose
 * type is not known yet; an end may be beyond what it can have.
 */
static bool parse_range(
	struct ky_ctf2 *p, json *pair, struct ky_range *r, const struct ky_type *type)
{
	json *lo, *hi;
	bool is_signed;

	if (json_object_get_type(pair) != json_type_array || json_object_array_length(pair) != 2) {
		ky_ctf2_fail(p, "a range is not a pair of integers");
		return false;
	}
	lo = json_object_array_get_idx(pair, 0);
	hi = json_object_array_get_idx(pair, 1);
	*r = (struct ky_range){
		ky_ctf2_number_of(p, lo, "range"), ky_ctf2_number_of(p, hi, "range")};
	is_signed = type ? type->is_signed
			 : json_object_get_int64(lo) < 0 || json_object_get_int64(hi) < 0;
	if (!is_signed && json_object_get_int64(hi) < 0)
		return false;
	if (!is_signed && json_object_get_int64(lo) < 0)
		r->lo = 0;
	if (is_signed ? (int64_t)r->hi < (int64_t)r->lo : r->hi < r->lo)
		ky_ctf2_fail(p, "a range ends before it begins");
	return true;
}

/* [[LO, HI], ...]; false after an error. */
static bool parse_ranges(
	struct ky_ctf2 *p, json *list, struct ranges *to, const struct ky_type *type)
{
	size_t n = list && json_object_get_type(list) == json_type_array
			   ? json_object_array_length(list)
			   : 0;

	for (size_t i = 0; i < n; i++) {
		struct ky_range range, *r;

		if (!parse_range(p, json_object_array_get_idx(list, i), &range, type))
			continue;
		r = ky_ctf2_grow(p, &to->v, &to->n, &to->cap, sizeof(*r));
		if (!r)
			return false;
		*r = range;
	}
	if (!n)
		ky_ctf2_fail(p, "there are no ranges");
	return !p->failed;
}

/* {"LABEL": [ranges], ...} of an enumeration, or of the flags of a bit map. */
static void parse_labels(struct ky_ctf2 *p, json *o, const char *key, struct ky_type *t)
{
	json *labels = ky_ctf2_kind(p, o, key, json_type_object);
	struct ranges ranges = {0};
	const char **names = NULL;
	size_t n = 0, cap = 0;

	if (!labels)
		return;
	json_object_object_foreach(labels, label, list)
	{
		const char *name = ky_ctf2_intern(p, label);

		if (!name || !parse_ranges(p, list, &ranges, t))
			return;
		while (n < ranges.n) {
			const char **at = ky_ctf2_grow(p, &names, &n, &cap, sizeof(*at));

			if (!at)
				return;
			*at = name;
		}
	}
	t->labels = names;
	t->ranges = ranges.v;
	t->n = (uint32_t)n;
	if (!p->failed && !ky_type_index_labels(p->tsdl, t))
		ky_ctf2_fail(p, "the metadata is too large");
}

static void parse_mappings(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_base(p, o, t);
	parse_labels(p, o, "mappings", t);
	if (t->n)
		t->kind = KY_TYPE_ENUM;
}

static void parse_bits(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_length(p, o, t);
	t->base = 16;
	t->show = KY_SHOW_BITS;
}

static void parse_flags(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_bits(p, o, t);
	parse_labels(p, o, "flags", t);
	t->show = KY_SHOW_FLAGS;
}

static void parse_bool(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_length(p, o, t);
	t->base = 10;
	t->show = KY_SHOW_BOOL;
}

static void parse_unsigned(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_length(p, o, t);
	parse_mappings(p, o, t);
}

static void parse_signed(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->is_signed = true;
	parse_unsigned(p, o, t);
}

static void parse_leb_unsigned(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->is_leb = true;
	t->size = 64;
	t->align = 8;
	parse_mappings(p, o, t);
}

static void parse_leb_signed(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->is_signed = true;
	parse_leb_unsigned(p, o, t);
}

static void parse_float(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->kind = KY_TYPE_FLOAT;
	t->size = (uint8_t)ky_ctf2_number(p, o, "length", 0, 255);
	t->align = ky_ctf2_align(p, o, "alignment", 1);
	parse_byte_order(p, o, t);
	if (t->size != 32 && t->size != 64)
		ky_ctf2_fail(p, "floating point numbers of %u bits are not supported", t->size);
}

static void parse_encoding(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	static const char *const names[] = {
		"utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be"};
	const char *encoding = ky_ctf2_text(p, o, "encoding");

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		if (!encoding || !strcmp(encoding, names[i])) {
			t->encoding = (uint8_t)i;
			return;
		}
	}
	ky_ctf2_fail(p, "the encoding '%.32s' is not supported", encoding);
}

static void parse_string(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_encoding(p, o, t);
	t->kind = KY_TYPE_STRING;
	t->align = 8;
}

/* --- references to fields --- */

static const char *const origins[] = {"packet-header", "packet-context", "event-record-header",
	"event-record-common-context", "event-record-specific-context", "event-record-payload"};

static void parse_origin(struct ky_ctf2 *p, const char *origin, struct ky_type *t)
{
	t->origin = KY_FROM_HERE;
	for (size_t i = 0; origin && i < KY_ARRAY_SIZE(origins); i++) {
		if (!strcmp(origin, origins[i]))
			t->origin = (uint8_t)(KY_FROM_SCOPE + i);
	}
	if (origin && t->origin == KY_FROM_HERE)
		ky_ctf2_fail(p, "'%.64s' is not an origin of fields", origin);
}

/*
 * {"origin": ..., "path": ["a", null, "b"]}: null leads to the structure outside. Drafts of CTF 2
 * have [ORIGIN, "a", "b"].
 */
static void parse_location(struct ky_ctf2 *p, json *o, const char *key, struct ky_type *t)
{
	json *location = ky_ctf2_member(o, key), *path = location;
	bool is_draft = location && json_object_get_type(location) == json_type_array;
	size_t first = is_draft ? 1 : 0; /* word of the path */
	size_t n, n_words = 0;
	const char **words, *origin = NULL;

	if (!is_draft) {
		location = ky_ctf2_kind(p, o, key, json_type_object);
		path = location ? ky_ctf2_kind(p, location, "path", json_type_array) : NULL;
		origin = location ? ky_ctf2_text(p, location, "origin") : NULL;
	}
	n = path ? json_object_array_length(path) : 0;
	words = ky_ctf2_alloc(p, (n + 1) * sizeof(*words));
	if (n <= first)
		ky_ctf2_fail(p, "'%s' is missing, or has no path", key);
	if (p->failed)
		return;
	if (is_draft)
		origin = json_object_get_string(json_object_array_get_idx(path, 0));
	parse_origin(p, origin, t);
	for (size_t i = first; i < n; i++) {
		json *word = json_object_array_get_idx(path, i);

		if (json_object_get_type(word) == json_type_string)
			words[n_words++] = ky_ctf2_intern(p, json_object_get_string(word));
		else if (word)
			ky_ctf2_fail(p, "'%s' has a path of other than names", key);
		else if (n_words)
			n_words--;
		else
			t->n_up++;
	}
	words[n_words] = NULL;
	t->path = words;
}

/* --- arrays --- */

static void parse_static(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->kind = KY_TYPE_ARRAY;
	t->count = ky_ctf2_number(p, o, "length", 0, UINT64_MAX);
	if (!ky_ctf2_member(o, "length"))
		ky_ctf2_fail(p, "'length' is missing");
}

static void parse_dynamic(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->kind = KY_TYPE_SEQUENCE;
	parse_location(p, o, "length-field-location", t);
}

static void parse_static_string(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_encoding(p, o, t);
	parse_static(p, o, t);
	t->elem = &character;
}

static void parse_dynamic_string(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_encoding(p, o, t);
	parse_dynamic(p, o, t);
	t->elem = &character;
}

static void parse_static_blob(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_static(p, o, t);
	t->elem = &byte;
	t->is_blob = true;
}

static void parse_dynamic_blob(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_dynamic(p, o, t);
	t->elem = &byte;
	t->is_blob = true;
}

static void parse_element(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	t->align = ky_ctf2_align(p, o, "minimum-alignment", 1);
	t->elem = ky_ctf2_class(p, ky_ctf2_member(o, "element-field-class"));
}

static void parse_static_array(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_static(p, o, t);
	parse_element(p, o, t);
}

static void parse_dynamic_array(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	parse_dynamic(p, o, t);
	parse_element(p, o, t);
}

/* --- structures, options, variants --- */

static void parse_structure(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	json *list = ky_ctf2_kind(p, o, "member-classes", json_type_array);
	size_t n = list ? json_object_array_length(list) : 0;
	struct ky_member *members = ky_ctf2_alloc(p, KY_MAX(n, (size_t)1) * sizeof(*members));

	t->kind = KY_TYPE_STRUCT;
	t->align = ky_ctf2_align(p, o, "minimum-alignment", 1);
	for (size_t i = 0; i < n && !p->failed; i++) {
		json *member = json_object_array_get_idx(list, i);

		ky_ctf2_refuse_extensions(p, member);
		members[i].name = ky_ctf2_text(p, member, "name");
		members[i].type = ky_ctf2_class(p, ky_ctf2_member(member, "field-class"));
		if (!members[i].name)
			ky_ctf2_fail(p, "a member of a structure has no name");
		else if (!p->failed && !ky_ctf2_add_name(p, t, members[i].name, i))
			ky_ctf2_fail(p, "'%.64s' is there twice", members[i].name);
	}
	t->members = members;
	t->n = (uint32_t)n;
}

/* Ranges of a selector may be signed or not: the layout compiler knows. */
static void set_options(struct ky_type *t, const struct ranges *ranges, const uint32_t *options,
	struct ky_member *members, size_t n)
{
	t->kind = KY_TYPE_VARIANT;
	t->align = 1;
	t->ranges = ranges->v;
	t->n_ranges = (uint32_t)ranges->n;
	t->options = options;
	t->members = members;
	t->n = (uint32_t)n;
}

/* A boolean selector says yes with any number but 0. */
static void parse_optional(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	json *list = ky_ctf2_member(o, "selector-field-ranges");
	struct ranges ranges = {0};
	struct ky_member *member = ky_ctf2_alloc(p, sizeof(*member));

	parse_location(p, o, "selector-field-location", t);
	if (list) {
		parse_ranges(p, list, &ranges, NULL);
	} else {
		struct ky_range *any = ky_ctf2_grow(
			p, &ranges.v, &ranges.n, &ranges.cap, sizeof(*any));

		if (any)
			*any = (struct ky_range){1, UINT64_MAX};
	}
	if (p->failed)
		return;
	*member = (struct ky_member){
		ky_ctf2_intern(p, ""), ky_ctf2_class(p, ky_ctf2_member(o, "field-class"))};
	t->is_optional = true;
	set_options(t, &ranges, ky_ctf2_alloc(p, ranges.n * sizeof(uint32_t)), member, 1);
}

static void parse_variant(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	json *list = ky_ctf2_kind(p, o, "options", json_type_array);
	size_t n = list ? json_object_array_length(list) : 0, n_options = 0, cap = 0;
	struct ky_member *members = ky_ctf2_alloc(p, KY_MAX(n, (size_t)1) * sizeof(*members));
	struct ranges ranges = {0};
	uint32_t *options = NULL;

	parse_location(p, o, "selector-field-location", t);
	for (size_t i = 0; i < n && !p->failed; i++) {
		json *option = json_object_array_get_idx(list, i);
		const char *name = ky_ctf2_text(p, option, "name");

		ky_ctf2_refuse_extensions(p, option);
		members[i].name = name ? name : ky_ctf2_intern(p, "");
		members[i].type = ky_ctf2_class(p, ky_ctf2_member(option, "field-class"));
		if (!parse_ranges(
			    p, ky_ctf2_member(option, "selector-field-ranges"), &ranges, NULL))
			return;
		while (n_options < ranges.n) {
			uint32_t *at = ky_ctf2_grow(p, &options, &n_options, &cap, sizeof(*at));

			if (!at)
				return;
			*at = (uint32_t)i;
		}
	}
	if (!n)
		ky_ctf2_fail(p, "a variant has no options");
	set_options(t, &ranges, options, members, n);
}

/* --- any class --- */

static const struct {
	const char *name;
	void (*parse)(struct ky_ctf2 *p, json *o, struct ky_type *t);
} classes[] = {
	{"fixed-length-bit-array", parse_bits},
	{"fixed-length-bit-map", parse_flags},
	{"fixed-length-boolean", parse_bool},
	{"fixed-length-unsigned-integer", parse_unsigned},
	{"fixed-length-signed-integer", parse_signed},
	/* of drafts */
	{"fixed-length-unsigned-enumeration", parse_unsigned},
	{"fixed-length-signed-enumeration", parse_signed},
	{"variable-length-unsigned-enumeration", parse_leb_unsigned},
	{"variable-length-signed-enumeration", parse_leb_signed},
	{"fixed-length-floating-point-number", parse_float},
	{"variable-length-unsigned-integer", parse_leb_unsigned},
	{"variable-length-signed-integer", parse_leb_signed},
	{"null-terminated-string", parse_string},
	{"static-length-string", parse_static_string},
	{"dynamic-length-string", parse_dynamic_string},
	{"static-length-blob", parse_static_blob},
	{"dynamic-length-blob", parse_dynamic_blob},
	{"structure", parse_structure},
	{"static-length-array", parse_static_array},
	{"dynamic-length-array", parse_dynamic_array},
	{"optional", parse_optional},
	{"variant", parse_variant},
};

static const struct {
	const char *name;
	enum ky_tsdl_role role;
} roles[] = {
	{"packet-magic-number", KY_TSDL_ROLE_MAGIC},
	{"metadata-stream-uuid", KY_TSDL_ROLE_UUID},
	{"data-stream-class-id", KY_TSDL_ROLE_STREAM_CLASS},
	{"data-stream-id", KY_TSDL_ROLE_STREAM},
	{"default-clock-timestamp", KY_TSDL_ROLE_TIME},
	{"packet-end-default-clock-timestamp", KY_TSDL_ROLE_END_TIME},
	{"packet-content-length", KY_TSDL_ROLE_CONTENT_SIZE},
	{"packet-total-length", KY_TSDL_ROLE_PACKET_SIZE},
	{"packet-sequence-number", KY_TSDL_ROLE_SEQ},
	{"discarded-event-record-counter-snapshot", KY_TSDL_ROLE_DISCARDED},
	{"event-record-class-id", KY_TSDL_ROLE_EVENT_CLASS},
};

static void parse_roles(struct ky_ctf2 *p, json *o, struct ky_type *t)
{
	json *list = ky_ctf2_kind(p, o, "roles", json_type_array);
	size_t n = list ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));

		for (size_t j = 0; name && j < KY_ARRAY_SIZE(roles); j++) {
			if (!strcmp(name, roles[j].name))
				t->roles |= (uint16_t)(1u << roles[j].role);
		}
	}
}

void ky_ctf2_add_alias(struct ky_ctf2 *p, const char *name, json *class)
{
	const struct ky_type **at = ky_ctf2_grow(
		p, &p->aliases, &p->n_aliases, &p->cap_aliases, sizeof(*at));

	if (!at)
		return;
	*at = ky_ctf2_class(p, class);
	if (!p->failed && !ky_ctf2_add_name(p, &alias_space, name, p->n_aliases - 1))
		ky_ctf2_fail(p, "the alias '%.64s' is there twice", name);
}

static const struct ky_type *find_alias(struct ky_ctf2 *p, const char *text)
{
	const char *name = ky_ctf2_intern(p, text);
	uint32_t at = name ? ky_names_find(&p->tsdl->names, &alias_space, name) : UINT32_MAX;

	if (at == UINT32_MAX) {
		ky_ctf2_fail(p, "unknown field class '%.64s'", text);
		return NULL;
	}
	return p->aliases[at];
}

static const struct ky_type *parse_object(struct ky_ctf2 *p, json *o)
{
	const char *name = ky_ctf2_text(p, o, "type");
	struct ky_type *t = ky_ctf2_alloc(p, sizeof(*t));

	ky_ctf2_refuse_extensions(p, o);
	for (size_t i = 0; name && t && i < KY_ARRAY_SIZE(classes); i++) {
		if (strcmp(name, classes[i].name))
			continue;
		t->kind = KY_TYPE_INT;
		classes[i].parse(p, o, t);
		parse_roles(p, o, t);
		return p->failed ? NULL : t;
	}
	ky_ctf2_fail(p, "unknown type of field class '%.64s'", name ? name : "");
	return NULL;
}

const struct ky_type *ky_ctf2_class(struct ky_ctf2 *p, json *o)
{
	const struct ky_type *t = NULL;

	if (++p->depth > KY_TSDL_MAX_DEPTH)
		ky_ctf2_fail(p, "field classes are nested too deeply");
	if (p->failed)
		return NULL;
	if (json_object_get_type(o) == json_type_string)
		t = find_alias(p, json_object_get_string(o));
	else if (json_object_get_type(o) == json_type_object)
		t = parse_object(p, o);
	else
		ky_ctf2_fail(p, "a field class is missing");
	p->depth--;
	return t;
}

const struct ky_type *ky_ctf2_scope(struct ky_ctf2 *p, json *o, const char *key)
{
	json *class = ky_ctf2_member(o, key);
	const struct ky_type *t = class ? ky_ctf2_class(p, class) : NULL;

	if (t && t->kind != KY_TYPE_STRUCT)
		ky_ctf2_fail(p, "'%s' is not a structure", key);
	return t;
}
