/* SPDX-License-Identifier: MIT */
/*
 * CTF2-SPEC-2.0. Refuses by name all extensions, and the types that this reader does not decode:
 * bit orders other than the usual one of the byte order, floating point numbers of other than 32
 * and 64 bits, integers of more than 64 bits.
 */
#include "reader/ctf2.h"

#include "reader/types.h"

#include <json-c/json.h>
#include <stdarg.h>

#define MAX_JSON_DEPTH (4 * KY_TSDL_MAX_DEPTH)
#define MAX_ALIGN      ((uint64_t)1 << 31)
#define FRAGMENT_MAX   (1u << 20) /* json-c needs hundreds of bytes for each element */

struct parser {
	struct ky_tsdl *tsdl;
	struct ky_tsdl_error *error;
	unsigned line; /* of the fragment */
	bool failed, has_preamble, has_trace;
	int depth;
	const struct ky_type **aliases;
	size_t n_aliases, cap_aliases;
	size_t cap_env, cap_clocks, cap_streams, cap_events;
};

typedef struct json_object json;

/* The owner of the names of aliases. */
static const char alias_space;

/* --- errors and memory --- */

static void KY_PRINTF(2, 3) fail_parsing(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	p->error->line = p->line;
	p->error->column = 1;
	va_start(ap, fmt);
	vsnprintf(p->error->text, sizeof(p->error->text), fmt, ap);
	va_end(ap);
}

static void *alloc_parsed(struct parser *p, size_t n)
{
	void *m = p->failed ? NULL : ky_arena_alloc(&p->tsdl->arena, n);

	if (!m)
		fail_parsing(p, "the metadata is too large");
	return m;
}

/* Room for one more element, which is zero, in an array of the arena. NULL after an error. */
static void *grow_parsed(struct parser *p, void *array, size_t *n, size_t *cap, size_t size)
{
	void *m = p->failed ? NULL : ky_arena_grow(&p->tsdl->arena, array, n, cap, size);

	if (!m)
		fail_parsing(p, "the metadata is too large");
	return m;
}

static const char *intern_text(struct parser *p, const char *text)
{
	const char *interned = ky_names_intern(&p->tsdl->names, text, strlen(text));

	if (!interned)
		fail_parsing(p, "the metadata is too large");
	return interned;
}

/* Remembers a name of an owner; false if the owner had it. */
static bool add_name(struct parser *p, const void *owner, const char *name, size_t number)
{
	uint32_t *at = name ? ky_names_at(&p->tsdl->names, owner, name) : NULL;

	if (!at) {
		fail_parsing(p, "the metadata is too large");
		return true;
	}
	if (*at != UINT32_MAX)
		return false;
	*at = (uint32_t)number;
	return true;
}

/* --- properties of objects --- */

/* NULL: not there. */
static json *find_member(json *o, const char *key)
{
	json *found = NULL;

	json_object_object_get_ex(o, key, &found);
	return found;
}

static json *find_kind(struct parser *p, json *o, const char *key, json_type kind)
{
	json *found = find_member(o, key);

	if (found && json_object_get_type(found) != kind) {
		fail_parsing(p, "'%s' is not %s", key,
			kind == json_type_array
				? "an array"
				: (kind == json_type_object ? "an object" : "a string"));
		return NULL;
	}
	return found;
}

/* Interned; NULL: not there. */
static const char *find_text(struct parser *p, json *o, const char *key)
{
	json *found = find_kind(p, o, key, json_type_string);

	return found ? intern_text(p, json_object_get_string(found)) : NULL;
}

/* Two's complement if it is negative. */
static uint64_t number_of(struct parser *p, json *v, const char *what)
{
	if (json_object_get_type(v) != json_type_int)
		fail_parsing(p, "'%s' is not an integer", what);
	return json_object_get_int64(v) < 0 ? (uint64_t)json_object_get_int64(v)
					    : json_object_get_uint64(v);
}

static uint64_t find_number(
	struct parser *p, json *o, const char *key, uint64_t missing, uint64_t max)
{
	json *found = find_member(o, key);
	uint64_t n = found ? number_of(p, found, key) : missing;

	if (found && (json_object_get_int64(found) < 0 || n > max))
		fail_parsing(
			p, "'%s' is not a number from 0 to %llu", key, (unsigned long long)max);
	return n;
}

static uint32_t find_align(struct parser *p, json *o, const char *key, uint32_t missing)
{
	uint64_t n = find_number(p, o, key, missing, MAX_ALIGN);

	if (!ky_is_pow2(n))
		fail_parsing(p, "'%s' is not a power of two", key);
	return (uint32_t)n;
}

/* A reader that does not know an extension must not go on. */
static void refuse_extensions(struct parser *p, json *o)
{
	json *spaces = find_kind(p, o, "extensions", json_type_object);

	if (!spaces)
		return;
	json_object_object_foreach(spaces, space, names)
	{
		if (json_object_get_type(names) != json_type_object) {
			fail_parsing(p, "the extension '%.64s' is not supported", space);
			return;
		}
		json_object_object_foreach(names, name, unused)
		{
			(void)unused;
			fail_parsing(p, "the extension '%.64s' of '%.64s' is not supported", name,
				space);
		}
	}
}

/* --- field classes --- */

static const struct ky_type *parse_class(struct parser *p, json *o);

static const struct ky_type character = {
	.kind = KY_TYPE_INT, .size = 8, .base = 10, .align = 8, .is_text = true};
static const struct ky_type byte = {.kind = KY_TYPE_INT, .size = 8, .base = 16, .align = 8};

static void parse_byte_order(struct parser *p, json *o, struct ky_type *t)
{
	const char *order = find_text(p, o, "byte-order"), *bits = find_text(p, o, "bit-order");
	const char *natural = "first-to-last";

	if (order && !strcmp(order, "little-endian")) {
		t->byte_order = KY_ORDER_LE;
	} else if (order && !strcmp(order, "big-endian")) {
		t->byte_order = KY_ORDER_BE;
		natural = "last-to-first";
	} else {
		fail_parsing(p, "a field needs a byte order: little-endian or big-endian");
		return;
	}
	if (bits && strcmp(bits, natural))
		fail_parsing(p, "the bit order '%.32s' with the byte order '%s' is not supported",
			bits, order);
}

static void parse_length(struct parser *p, json *o, struct ky_type *t)
{
	t->size = (uint8_t)find_number(p, o, "length", 0, 64);
	t->align = find_align(p, o, "alignment", 1);
	parse_byte_order(p, o, t);
	if (!t->size)
		fail_parsing(p, "a fixed length must be of 1 to 64 bits");
}

static void parse_base(struct parser *p, json *o, struct ky_type *t)
{
	t->base = (uint8_t)find_number(p, o, "preferred-display-base", 10, 16);
	if (t->base != 2 && t->base != 8 && t->base != 10 && t->base != 16)
		fail_parsing(p, "'preferred-display-base' is not 2, 8, 10 or 16");
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
	struct parser *p, json *pair, struct ky_range *r, const struct ky_type *type)
{
	json *lo, *hi;
	bool is_signed;

	if (json_object_get_type(pair) != json_type_array || json_object_array_length(pair) != 2) {
		fail_parsing(p, "a range is not a pair of integers");
		return false;
	}
	lo = json_object_array_get_idx(pair, 0);
	hi = json_object_array_get_idx(pair, 1);
	*r = (struct ky_range){number_of(p, lo, "range"), number_of(p, hi, "range")};
	is_signed = type ? type->is_signed
			 : json_object_get_int64(lo) < 0 || json_object_get_int64(hi) < 0;
	if (!is_signed && json_object_get_int64(hi) < 0)
		return false;
	if (!is_signed && json_object_get_int64(lo) < 0)
		r->lo = 0;
	if (is_signed ? (int64_t)r->hi < (int64_t)r->lo : r->hi < r->lo)
		fail_parsing(p, "a range ends before it begins");
	return true;
}

/* [[LO, HI], ...]; false after an error. */
static bool parse_ranges(
	struct parser *p, json *list, struct ranges *to, const struct ky_type *type)
{
	size_t n = list && json_object_get_type(list) == json_type_array
			   ? json_object_array_length(list)
			   : 0;

	for (size_t i = 0; i < n; i++) {
		struct ky_range range, *r;

		if (!parse_range(p, json_object_array_get_idx(list, i), &range, type))
			continue;
		r = grow_parsed(p, &to->v, &to->n, &to->cap, sizeof(*r));
		if (!r)
			return false;
		*r = range;
	}
	if (!n)
		fail_parsing(p, "there are no ranges");
	return !p->failed;
}

/* {"LABEL": [ranges], ...} of an enumeration, or of the flags of a bit map. */
static void parse_labels(struct parser *p, json *o, const char *key, struct ky_type *t)
{
	json *labels = find_kind(p, o, key, json_type_object);
	struct ranges ranges = {0};
	const char **names = NULL;
	size_t n = 0, cap = 0;

	if (!labels)
		return;
	json_object_object_foreach(labels, label, list)
	{
		const char *name = intern_text(p, label);

		if (!name || !parse_ranges(p, list, &ranges, t))
			return;
		while (n < ranges.n) {
			const char **at = grow_parsed(p, &names, &n, &cap, sizeof(*at));

			if (!at)
				return;
			*at = name;
		}
	}
	t->labels = names;
	t->ranges = ranges.v;
	t->n = (uint32_t)n;
	if (!p->failed && !ky_type_index_labels(p->tsdl, t))
		fail_parsing(p, "the metadata is too large");
}

static void parse_mappings(struct parser *p, json *o, struct ky_type *t)
{
	parse_base(p, o, t);
	parse_labels(p, o, "mappings", t);
	if (t->n)
		t->kind = KY_TYPE_ENUM;
}

static void parse_bits(struct parser *p, json *o, struct ky_type *t)
{
	parse_length(p, o, t);
	t->base = 16;
	t->show = KY_SHOW_BITS;
}

static void parse_flags(struct parser *p, json *o, struct ky_type *t)
{
	parse_bits(p, o, t);
	parse_labels(p, o, "flags", t);
	t->show = KY_SHOW_FLAGS;
}

static void parse_bool(struct parser *p, json *o, struct ky_type *t)
{
	parse_length(p, o, t);
	t->base = 10;
	t->show = KY_SHOW_BOOL;
}

static void parse_unsigned(struct parser *p, json *o, struct ky_type *t)
{
	parse_length(p, o, t);
	parse_mappings(p, o, t);
}

static void parse_signed(struct parser *p, json *o, struct ky_type *t)
{
	t->is_signed = true;
	parse_unsigned(p, o, t);
}

static void parse_leb_unsigned(struct parser *p, json *o, struct ky_type *t)
{
	t->is_leb = true;
	t->size = 64;
	t->align = 8;
	parse_mappings(p, o, t);
}

static void parse_leb_signed(struct parser *p, json *o, struct ky_type *t)
{
	t->is_signed = true;
	parse_leb_unsigned(p, o, t);
}

static void parse_float(struct parser *p, json *o, struct ky_type *t)
{
	t->kind = KY_TYPE_FLOAT;
	t->size = (uint8_t)find_number(p, o, "length", 0, 255);
	t->align = find_align(p, o, "alignment", 1);
	parse_byte_order(p, o, t);
	if (t->size != 32 && t->size != 64)
		fail_parsing(p, "floating point numbers of %u bits are not supported", t->size);
}

static void parse_encoding(struct parser *p, json *o, struct ky_type *t)
{
	static const char *const names[] = {
		"utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be"};
	const char *encoding = find_text(p, o, "encoding");

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		if (!encoding || !strcmp(encoding, names[i])) {
			t->encoding = (uint8_t)i;
			return;
		}
	}
	fail_parsing(p, "the encoding '%.32s' is not supported", encoding);
}

static void parse_string(struct parser *p, json *o, struct ky_type *t)
{
	parse_encoding(p, o, t);
	t->kind = KY_TYPE_STRING;
	t->align = 8;
}

/* --- references to fields --- */

static const char *const origins[] = {"packet-header", "packet-context", "event-record-header",
	"event-record-common-context", "event-record-specific-context", "event-record-payload"};

static void parse_origin(struct parser *p, const char *origin, struct ky_type *t)
{
	t->origin = KY_FROM_HERE;
	for (size_t i = 0; origin && i < KY_ARRAY_SIZE(origins); i++) {
		if (!strcmp(origin, origins[i]))
			t->origin = (uint8_t)(KY_FROM_SCOPE + i);
	}
	if (origin && t->origin == KY_FROM_HERE)
		fail_parsing(p, "'%.64s' is not an origin of fields", origin);
}

/*
 * {"origin": ..., "path": ["a", null, "b"]}: null leads to the structure outside. Drafts of CTF 2
 * have [ORIGIN, "a", "b"].
 */
static void parse_location(struct parser *p, json *o, const char *key, struct ky_type *t)
{
	json *location = find_member(o, key), *path = location;
	bool is_draft = location && json_object_get_type(location) == json_type_array;
	size_t n, n_words = 0;
	const char **words, *origin = NULL;

	if (!is_draft) {
		location = find_kind(p, o, key, json_type_object);
		path = location ? find_kind(p, location, "path", json_type_array) : NULL;
		origin = location ? find_text(p, location, "origin") : NULL;
	}
	n = path ? json_object_array_length(path) : 0;
	words = alloc_parsed(p, (n + 1) * sizeof(*words));
	if (n <= is_draft)
		fail_parsing(p, "'%s' is missing, or has no path", key);
	if (p->failed)
		return;
	if (is_draft)
		origin = json_object_get_string(json_object_array_get_idx(path, 0));
	parse_origin(p, origin, t);
	for (size_t i = is_draft; i < n; i++) {
		json *word = json_object_array_get_idx(path, i);

		if (json_object_get_type(word) == json_type_string)
			words[n_words++] = intern_text(p, json_object_get_string(word));
		else if (word)
			fail_parsing(p, "'%s' has a path of other than names", key);
		else if (n_words)
			n_words--;
		else
			t->n_up++;
	}
	words[n_words] = NULL;
	t->path = words;
}

/* --- arrays --- */

static void parse_static(struct parser *p, json *o, struct ky_type *t)
{
	t->kind = KY_TYPE_ARRAY;
	t->count = find_number(p, o, "length", 0, UINT64_MAX);
	if (!find_member(o, "length"))
		fail_parsing(p, "'length' is missing");
}

static void parse_dynamic(struct parser *p, json *o, struct ky_type *t)
{
	t->kind = KY_TYPE_SEQUENCE;
	parse_location(p, o, "length-field-location", t);
}

static void parse_static_string(struct parser *p, json *o, struct ky_type *t)
{
	parse_encoding(p, o, t);
	parse_static(p, o, t);
	t->elem = &character;
}

static void parse_dynamic_string(struct parser *p, json *o, struct ky_type *t)
{
	parse_encoding(p, o, t);
	parse_dynamic(p, o, t);
	t->elem = &character;
}

static void parse_static_blob(struct parser *p, json *o, struct ky_type *t)
{
	parse_static(p, o, t);
	t->elem = &byte;
	t->is_blob = true;
}

static void parse_dynamic_blob(struct parser *p, json *o, struct ky_type *t)
{
	parse_dynamic(p, o, t);
	t->elem = &byte;
	t->is_blob = true;
}

static void parse_element(struct parser *p, json *o, struct ky_type *t)
{
	t->align = find_align(p, o, "minimum-alignment", 1);
	t->elem = parse_class(p, find_member(o, "element-field-class"));
}

static void parse_static_array(struct parser *p, json *o, struct ky_type *t)
{
	parse_static(p, o, t);
	parse_element(p, o, t);
}

static void parse_dynamic_array(struct parser *p, json *o, struct ky_type *t)
{
	parse_dynamic(p, o, t);
	parse_element(p, o, t);
}

/* --- structures, options, variants --- */

static void parse_structure(struct parser *p, json *o, struct ky_type *t)
{
	json *list = find_kind(p, o, "member-classes", json_type_array);
	size_t n = list ? json_object_array_length(list) : 0;
	struct ky_member *members = alloc_parsed(p, KY_MAX(n, (size_t)1) * sizeof(*members));

	t->kind = KY_TYPE_STRUCT;
	t->align = find_align(p, o, "minimum-alignment", 1);
	for (size_t i = 0; i < n && !p->failed; i++) {
		json *member = json_object_array_get_idx(list, i);

		refuse_extensions(p, member);
		members[i].name = find_text(p, member, "name");
		members[i].type = parse_class(p, find_member(member, "field-class"));
		if (!members[i].name)
			fail_parsing(p, "a member of a structure has no name");
		else if (!p->failed && !add_name(p, t, members[i].name, i))
			fail_parsing(p, "'%.64s' is there twice", members[i].name);
	}
	t->members = members;
	t->n = (uint32_t)n;
}

/* Ranges of a selector may be signed or not: the layout compiler knows. */
static void set_options(struct parser *p, struct ky_type *t, const struct ranges *ranges,
	const uint32_t *options, struct ky_member *members, size_t n)
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
static void parse_optional(struct parser *p, json *o, struct ky_type *t)
{
	json *list = find_member(o, "selector-field-ranges");
	struct ranges ranges = {0};
	struct ky_member *member = alloc_parsed(p, sizeof(*member));

	parse_location(p, o, "selector-field-location", t);
	if (list) {
		parse_ranges(p, list, &ranges, NULL);
	} else {
		struct ky_range *any = grow_parsed(
			p, &ranges.v, &ranges.n, &ranges.cap, sizeof(*any));

		if (any)
			*any = (struct ky_range){1, UINT64_MAX};
	}
	if (p->failed)
		return;
	*member = (struct ky_member){
		intern_text(p, ""), parse_class(p, find_member(o, "field-class"))};
	t->is_optional = true;
	set_options(p, t, &ranges, alloc_parsed(p, ranges.n * sizeof(uint32_t)), member, 1);
}

static void parse_variant(struct parser *p, json *o, struct ky_type *t)
{
	json *list = find_kind(p, o, "options", json_type_array);
	size_t n = list ? json_object_array_length(list) : 0, n_options = 0, cap = 0;
	struct ky_member *members = alloc_parsed(p, KY_MAX(n, (size_t)1) * sizeof(*members));
	struct ranges ranges = {0};
	uint32_t *options = NULL;

	parse_location(p, o, "selector-field-location", t);
	for (size_t i = 0; i < n && !p->failed; i++) {
		json *option = json_object_array_get_idx(list, i);
		const char *name = find_text(p, option, "name");

		refuse_extensions(p, option);
		members[i].name = name ? name : intern_text(p, "");
		members[i].type = parse_class(p, find_member(option, "field-class"));
		if (!parse_ranges(p, find_member(option, "selector-field-ranges"), &ranges, NULL))
			return;
		while (n_options < ranges.n) {
			uint32_t *at = grow_parsed(p, &options, &n_options, &cap, sizeof(*at));

			if (!at)
				return;
			*at = (uint32_t)i;
		}
	}
	if (!n)
		fail_parsing(p, "a variant has no options");
	set_options(p, t, &ranges, options, members, n);
}

/* --- any class --- */

static const struct {
	const char *name;
	void (*parse)(struct parser *p, json *o, struct ky_type *t);
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

static void parse_roles(struct parser *p, json *o, struct ky_type *t)
{
	json *list = find_kind(p, o, "roles", json_type_array);
	size_t n = list ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));

		for (size_t j = 0; name && j < KY_ARRAY_SIZE(roles); j++) {
			if (!strcmp(name, roles[j].name))
				t->role = (uint8_t)roles[j].role;
		}
	}
}

static const struct ky_type *find_alias(struct parser *p, const char *text)
{
	const char *name = intern_text(p, text);
	uint32_t at = name ? ky_names_find(&p->tsdl->names, &alias_space, name) : UINT32_MAX;

	if (at == UINT32_MAX) {
		fail_parsing(p, "unknown field class '%.64s'", text);
		return NULL;
	}
	return p->aliases[at];
}

static const struct ky_type *parse_object(struct parser *p, json *o)
{
	const char *name = find_text(p, o, "type");
	struct ky_type *t = alloc_parsed(p, sizeof(*t));

	refuse_extensions(p, o);
	for (size_t i = 0; name && t && i < KY_ARRAY_SIZE(classes); i++) {
		if (strcmp(name, classes[i].name))
			continue;
		t->kind = KY_TYPE_INT;
		classes[i].parse(p, o, t);
		parse_roles(p, o, t);
		return p->failed ? NULL : t;
	}
	fail_parsing(p, "unknown type of field class '%.64s'", name ? name : "");
	return NULL;
}

/* NULL after an error. */
static const struct ky_type *parse_class(struct parser *p, json *o)
{
	const struct ky_type *t = NULL;

	if (++p->depth > KY_TSDL_MAX_DEPTH)
		fail_parsing(p, "field classes are nested too deeply");
	if (p->failed)
		return NULL;
	if (json_object_get_type(o) == json_type_string)
		t = find_alias(p, json_object_get_string(o));
	else if (json_object_get_type(o) == json_type_object)
		t = parse_object(p, o);
	else
		fail_parsing(p, "a field class is missing");
	p->depth--;
	return t;
}

/* A scope of fields is a structure, or absent. */
static const struct ky_type *parse_scope(struct parser *p, json *o, const char *key)
{
	json *class = find_member(o, key);
	const struct ky_type *t = class ? parse_class(p, class) : NULL;

	if (t && t->kind != KY_TYPE_STRUCT)
		fail_parsing(p, "'%s' is not a structure", key);
	return t;
}

/* --- fragments --- */

static void parse_preamble(struct parser *p, json *o)
{
	json *uuid = find_kind(p, o, "uuid", json_type_array);
	struct ky_tsdl *t = p->tsdl;

	if (p->has_preamble)
		fail_parsing(p, "there are two preambles");
	if (find_number(p, o, "version", 0, UINT32_MAX) != 2)
		fail_parsing(p, "this is version %llu of CTF: only 1.8 and 2 can be read",
			(unsigned long long)find_number(p, o, "version", 0, UINT32_MAX));
	p->has_preamble = true;
	if (!uuid)
		return;
	t->has_uuid = json_object_array_length(uuid) == sizeof(t->uuid);
	for (size_t i = 0; t->has_uuid && i < sizeof(t->uuid); i++)
		t->uuid[i] = (uint8_t)number_of(p, json_object_array_get_idx(uuid, i), "uuid");
	if (!t->has_uuid)
		fail_parsing(p, "'uuid' is not 16 numbers");
}

static void parse_alias(struct parser *p, json *o)
{
	const char *name = find_text(p, o, "name");
	const struct ky_type **at;

	if (!name)
		fail_parsing(p, "an alias has no name");
	at = grow_parsed(p, &p->aliases, &p->n_aliases, &p->cap_aliases, sizeof(*at));
	if (!at)
		return;
	*at = parse_class(p, find_member(o, "field-class"));
	if (!p->failed && !add_name(p, &alias_space, name, p->n_aliases - 1))
		fail_parsing(p, "the alias '%.64s' is there twice", name);
}

static void parse_environment(struct parser *p, json *o)
{
	json *list = find_kind(p, o, "environment", json_type_object);
	struct ky_tsdl *t = p->tsdl;

	if (!list)
		return;
	json_object_object_foreach(list, key, value)
	{
		struct ky_env *e = grow_parsed(p, &t->env, &t->n_env, &p->cap_env, sizeof(*e));

		if (!e)
			return;
		e->name = intern_text(p, key);
		if (json_object_get_type(value) == json_type_string) {
			e->text = intern_text(p, json_object_get_string(value));
		} else {
			e->number = (int64_t)number_of(p, value, "environment");
			e->digits = intern_text(p, json_object_get_string(value));
		}
	}
}

static void parse_trace(struct parser *p, json *o)
{
	if (p->has_trace)
		fail_parsing(p, "the trace is described twice");
	p->has_trace = true;
	parse_environment(p, o);
	p->tsdl->packet_header = parse_scope(p, o, "packet-header-field-class");
}

static void parse_clock(struct parser *p, json *o)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_trace_clock *c = grow_parsed(
		p, &t->clocks, &t->n_clocks, &p->cap_clocks, sizeof(*c));
	json *offset = find_kind(p, o, "offset-from-origin", json_type_object);
	json *seconds = offset ? find_member(offset, "seconds") : NULL;
	const char *id = find_text(p, o, "id");

	if (!c)
		return;
	c->name = find_text(p, o, "name");
	c->description = find_text(p, o, "description");
	c->freq = find_number(p, o, "frequency", 0, UINT64_MAX);
	if (seconds)
		c->offset_s = (int64_t)number_of(p, seconds, "seconds");
	if (offset)
		c->offset = find_number(p, offset, "cycles", 0, UINT64_MAX);
	if (!c->name)
		c->name = id;
	if (!id)
		id = c->name; /* in drafts */
	if (!c->freq || !id)
		fail_parsing(p, "a clock needs an id and a frequency");
	else if (!add_name(p, &t->n_clocks, id, t->n_clocks - 1))
		fail_parsing(p, "two clocks have the id '%.64s'", id);
	else
		ky_trace_clock_prepare(c);
}

static void parse_stream(struct parser *p, json *o)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_stream *s = grow_parsed(
		p, &t->streams, &t->n_streams, &p->cap_streams, sizeof(*s));

	if (!s)
		return;
	s->id = find_number(p, o, "id", 0, UINT64_MAX);
	s->clock = find_text(p, o, "default-clock-class-id");
	if (!s->clock)
		s->clock = find_text(p, o, "default-clock-class-name"); /* in drafts */
	s->packet_context = parse_scope(p, o, "packet-context-field-class");
	s->event_header = parse_scope(p, o, "event-record-header-field-class");
	s->event_context = parse_scope(p, o, "event-record-common-context-field-class");
}

/* Of the attributes that babeltrace2 writes. */
static int parse_loglevel(json *o)
{
	static const char *const levels[] = {"emergency", "alert", "critical", "error", "warning",
		"notice", "info", "debug:system", "debug:program", "debug:process", "debug:module",
		"debug:unit", "debug:function", "debug:line", "debug"};
	json *attributes = find_member(
		o, find_member(o, "attributes") ? "attributes" : "user-attributes");
	json *space = attributes ? find_member(attributes, "babeltrace.org,2020") : NULL;
	json *level = space ? find_member(space, "log-level") : NULL;

	for (size_t i = 0; level && i < KY_ARRAY_SIZE(levels); i++) {
		if (!strcmp(json_object_get_string(level), levels[i]))
			return (int)i;
	}
	return -1;
}

static void parse_event(struct parser *p, json *o)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_event *e = grow_parsed(
		p, &t->events, &t->n_events, &p->cap_events, sizeof(*e));

	if (!e)
		return;
	e->name = find_text(p, o, "name");
	e->id = find_number(p, o, "id", 0, UINT64_MAX);
	e->stream_id = find_number(p, o, "data-stream-class-id", 0, UINT64_MAX);
	e->loglevel = parse_loglevel(o);
	e->context = parse_scope(p, o, "specific-context-field-class");
	e->fields = parse_scope(p, o, "payload-field-class");
}

static const struct {
	const char *name;
	void (*parse)(struct parser *p, json *o);
} fragments[] = {
	{"preamble", parse_preamble},
	{"field-class-alias", parse_alias},
	{"trace-class", parse_trace},
	{"clock-class", parse_clock},
	{"data-stream-class", parse_stream},
	{"event-record-class", parse_event},
};

static void parse_fragment(struct parser *p, json *o)
{
	const char *type = json_object_get_type(o) == json_type_object ? find_text(p, o, "type")
								       : NULL;

	if (!type) {
		fail_parsing(p, "a fragment is not an object with a type");
		return;
	}
	refuse_extensions(p, o);
	if (!p->has_preamble && strcmp(type, "preamble"))
		fail_parsing(p, "the metadata does not begin with a preamble");
	for (size_t i = 0; i < KY_ARRAY_SIZE(fragments) && !p->failed; i++) {
		if (!strcmp(type, fragments[i].name)) {
			fragments[i].parse(p, o);
			return;
		}
	}
	fail_parsing(p, "unknown type of fragment '%.64s'", type);
}

/* --- the whole --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == KY_CTF2_SEPARATOR;
}

/*
 * Parses one object at text. Returns how many bytes it has. A fragment that the end of the text
 * cuts off is left out.
 */
static size_t parse_text(
	struct parser *p, struct json_tokener *tokener, const char *text, size_t len, bool is_last)
{
	enum json_tokener_error error;
	size_t n;
	json *o;

	json_tokener_reset(tokener);
	o = json_tokener_parse_ex(tokener, text, (int)KY_MIN(len, (size_t)FRAGMENT_MAX));
	error = json_tokener_get_error(tokener);
	n = json_tokener_get_parse_end(tokener);
	if (o)
		parse_fragment(p, o);
	else if (len > FRAGMENT_MAX && error == json_tokener_continue)
		fail_parsing(p, "a fragment is larger than 1 MiB");
	else if (is_last && p->tsdl->n_streams && error == json_tokener_continue)
		p->tsdl->is_cut = true;
	else
		fail_parsing(p, "this is CTF 2, but not JSON: %s",
			error == json_tokener_continue ? "the fragment has no end"
						       : json_tokener_error_desc(error));
	json_object_put(o);
	return o ? n : len;
}

/* Drafts of CTF 2 have no separators: objects may follow each other without any. */
static void parse_fragments(struct parser *p, const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(MAX_JSON_DEPTH);
	const char *end = text + len, *stop = text;

	if (!tokener)
		fail_parsing(p, "no memory");
	p->line = 1;
	while (!p->failed && text < end) {
		size_t n = 1;

		if (text >= stop) {
			stop = memchr(text + 1, KY_CTF2_SEPARATOR, (size_t)(end - text - 1));
			stop = stop ? stop : end;
		}
		if (!is_blank(*text))
			n = parse_text(p, tokener, text, (size_t)(stop - text), stop == end);
		for (; n > 0; n--)
			p->line += *text++ == '\n';
	}
	if (tokener)
		json_tokener_free(tokener);
}

bool ky_ctf2_is(const char *text, size_t len)
{
	while (len && is_blank(*text) && *text != KY_CTF2_SEPARATOR) {
		text++;
		len--;
	}
	return len && (*text == KY_CTF2_SEPARATOR || *text == '{');
}

int ky_ctf2_parse(struct ky_tsdl *t, const char *text, size_t len, struct ky_tsdl_error *error)
{
	struct parser p = {.tsdl = t, .error = error};

	t->is_ctf2 = true;
	parse_fragments(&p, text, len);
	if (!p.has_trace && !p.failed && !t->n_streams)
		fail_parsing(&p, "no stream is described");
	if (!p.failed && !ky_tsdl_finish(t, error)) {
		error->line = error->column = 1;
		p.failed = true;
	}
	return p.failed ? -EINVAL : 0;
}
