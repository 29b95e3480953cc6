/* SPDX-License-Identifier: MIT */
/* The places of fields in a packed record (include/kymo/types.h). */
#include "filter/insn.h"
#include "filter/place.h"

/* Returns the size of a scalar; 0 if it is no scalar of a valid size. */
static uint32_t scalar_size(uint8_t kind, uint8_t size)
{
	switch (kind) {
	case KYMO_FIELD_INT:
	case KYMO_FIELD_UINT:
	case KYMO_FIELD_ENUM:
		return size == 1 || size == 2 || size == 4 || size == 8 ? size : 0;
	case KYMO_FIELD_FLOAT:
		return size == 4 || size == 8 ? size : 0;
	case KYMO_FIELD_BOOL:
	case KYMO_FIELD_MEDIA:
		return size == 1 ? size : 0;
	default:
		return 0;
	}
}

enum extent { FIXED, VARIABLE, UNKNOWN };

static enum extent measure_field(
	const struct kymo_field *f, uint64_t *ret_size, struct ky_filter_step *step);

/* Measures a structure: UNKNOWN unless the size of all its fields is known. */
static enum extent measure_struct(const struct kymo_field *fields, uint64_t *ret_size)
{
	struct ky_filter_step unused;
	uint64_t size;

	for (*ret_size = 0; fields->kind != KYMO_FIELD_END; fields++) {
		if (measure_field(fields, &size, &unused) != FIXED)
			return UNKNOWN;
		*ret_size += size;
		if (*ret_size > INT32_MAX)
			return UNKNOWN;
	}
	return FIXED;
}

/* Measures elements: FIXED if each is; VARIABLE if they are strings. */
static enum extent measure_element(const struct kymo_field *f, uint64_t *ret_size)
{
	*ret_size = 0;
	if (f->elem == KYMO_FIELD_STRUCT)
		return measure_struct(f->ext, ret_size);
	if (f->elem == KYMO_FIELD_STRING)
		return VARIABLE;
	*ret_size = scalar_size(f->elem, f->size);
	return *ret_size ? FIXED : UNKNOWN;
}

/* Measures a field, or finds the step over it; UNKNOWN if it needs more than one step. */
static enum extent measure_field(
	const struct kymo_field *f, uint64_t *ret_size, struct ky_filter_step *step)
{
	enum extent extent;
	uint64_t size;

	*step = (struct ky_filter_step){.kind = KYMO_FIELD_SEQUENCE, .size = 1};
	switch (f->kind) {
	case KYMO_FIELD_TEXT:
		*ret_size = f->count;
		return FIXED;
	case KYMO_FIELD_STRING:
		*step = (struct ky_filter_step){.kind = KYMO_FIELD_STRING};
		return VARIABLE;
	case KYMO_FIELD_TEXT_SEQUENCE:
	case KYMO_FIELD_BLOB:
		return VARIABLE;
	case KYMO_FIELD_ARRAY:
	case KYMO_FIELD_SEQUENCE:
		extent = measure_element(f, &size);
		*ret_size = size * f->count;
		if (extent == UNKNOWN || (extent == FIXED && f->kind == KYMO_FIELD_ARRAY))
			return extent;
		*step = (struct ky_filter_step){
			.kind = f->kind, .count = f->count, .size = (uint32_t)size};
		return size || extent == VARIABLE ? VARIABLE : UNKNOWN;
	case KYMO_FIELD_STRUCT:
		return measure_struct(f->ext, ret_size);
	default:
		*ret_size = scalar_size(f->kind, f->size);
		return *ret_size ? FIXED : UNKNOWN;
	}
}

/* --- walking over fields, in the order of the record --- */

struct walk {
	uint64_t offset; /* behind the last anchor */
	unsigned anchor;
	struct ky_filter_step *steps; /* to the first n_steps anchors; NULL: not requested */
	unsigned n_steps;
	/* the node that is searched, and the place for the reason of a failure */
	struct ky_filter_node *node;
	struct ky_filter_error *error;
};

static bool is_nested(const struct kymo_field *f)
{
	return f->kind == KYMO_FIELD_STRUCT || f->kind == KYMO_FIELD_VARIANT ||
	       f->elem == KYMO_FIELD_STRUCT;
}

static int step_over(struct walk *w, const struct kymo_field *f);

/* Steps over n structures without fixed size, field by field. */
static int step_over_structs(struct walk *w, const struct kymo_field *fields, uint32_t n)
{
	const struct kymo_field *f;
	int ret = 0;

	for (; n && !ret; n--)
		for (f = fields; f->kind != KYMO_FIELD_END && !ret; f++)
			ret = step_over(w, f);
	return ret;
}

/* Steps over a field. Returns 0; -EINVAL if that is impossible; -E2BIG if it would be too far. */
static int step_over(struct walk *w, const struct kymo_field *f)
{
	struct ky_filter_step step;
	uint64_t size = 0;

	switch (measure_field(f, &size, &step)) {
	case FIXED:
		w->offset += size;
		return w->offset > INT32_MAX ? -EINVAL : 0;
	case VARIABLE:
		if (w->anchor >= KY_FILTER_ANCHORS_MAX)
			return -E2BIG;
		step.skip = (uint32_t)w->offset;
		if (w->anchor < w->n_steps)
			w->steps[w->anchor] = step;
		w->anchor++;
		w->offset = 0;
		return 0;
	default:
		if (f->kind == KYMO_FIELD_STRUCT)
			return step_over_structs(w, f->ext, 1);
		if (f->kind == KYMO_FIELD_ARRAY && f->elem == KYMO_FIELD_STRUCT)
			return step_over_structs(w, f->ext, f->count);
		return -EINVAL;
	}
}

void ky_filter_steps(
	const struct kymo_field *fields, unsigned n_anchors, struct ky_filter_step *steps)
{
	struct walk w = {.steps = steps, .n_steps = n_anchors};

	for (; w.anchor < n_anchors; fields++)
		step_over(&w, fields);
}

/* --- finding a field --- */

static uint8_t flags_of(const struct kymo_field *f)
{
	const struct kymo_enum_type *e = f->ext;
	uint8_t scalar = f->kind == KYMO_FIELD_ARRAY || f->kind == KYMO_FIELD_SEQUENCE ? f->elem
										       : f->kind;
	uint8_t flags = scalar == KYMO_FIELD_ENUM ? f->flags
						  : f->flags & (uint8_t)~KYMO_FIELD_SIGNED;

	if (scalar == KYMO_FIELD_INT || (scalar == KYMO_FIELD_ENUM && e && e->is_signed))
		flags |= KYMO_FIELD_SIGNED;
	return flags;
}

/* Stores the place: the value begins `further` bytes behind the walk's position. */
static int put_place(struct walk *w, uint64_t further)
{
	struct ky_filter_place *p = &w->node->place;
	uint64_t offset = w->offset + further;

	/* more than any event has: then there is no value, as in a short sequence */
	if (p->within) {
		p->skip = (uint32_t)KY_MIN(p->skip + offset, (uint64_t)UINT32_MAX);
		return 0;
	}
	if (offset > INT32_MAX) {
		ky_filter_complain(w->error, "field '%.*s' lies behind more than an event can have",
			w->node->len, w->node->text);
		return -EINVAL;
	}
	p->anchor = (uint8_t)w->anchor;
	p->offset = (uint32_t)offset;
	return 0;
}

/*
 * Enters an element of a sequence: the sequence's count is at the walk's position. The elements
 * begin a new position.
 */
static int enter_sequence(struct walk *w, uint32_t index, uint64_t size)
{
	struct ky_filter_place *p = &w->node->place;
	int ret = put_place(w, 0);

	p->within = true;
	p->element = index;
	p->skip = (uint32_t)KY_MIN(index * size, (uint64_t)UINT32_MAX);
	w->offset = 0;
	return ret;
}

/* Treats the bytes of a text of fixed size, of a text sequence and of a BLOB as elements, too. */
static void take_element(struct ky_filter_place *p)
{
	bool is_text = p->kind >= KYMO_FIELD_TEXT;

	p->kind = is_text ? KYMO_FIELD_UINT : p->elem;
	p->elem = 0;
	if (is_text) {
		p->size = 1;
		p->flags = 0;
	}
}

static int has_no_element(struct walk *w, const struct kymo_field *f, uint32_t index)
{
	ky_filter_complain(w->error, "field '%s' has no element %u: it has %u of them", f->name,
		index, f->count);
	return -EINVAL;
}

static int choose_element(struct walk *w, const struct kymo_field *f)
{
	struct ky_filter_node *n = w->node;
	struct ky_filter_place *p = &n->place;
	bool fixed = f->kind == KYMO_FIELD_ARRAY || f->kind == KYMO_FIELD_TEXT;

	if (f->kind < KYMO_FIELD_ARRAY || f->kind > KYMO_FIELD_BLOB) {
		ky_filter_complain(w->error, "field '%s' has no elements", f->name);
		return -EINVAL;
	}
	if (fixed && n->index >= f->count)
		return has_no_element(w, f, n->index);
	if (f->kind < KYMO_FIELD_TEXT && f->elem == KYMO_FIELD_STRING)
		return put_place(w, 0);
	take_element(p);
	if (fixed)
		return put_place(w, (uint64_t)n->index * p->size);
	return enter_sequence(w, n->index, p->size);
}

/* Sets the node to the field, or to an element of it. */
static int choose_field(struct walk *w, const struct kymo_field *f)
{
	struct ky_filter_place *p = &w->node->place;

	p->kind = f->kind;
	p->elem = f->elem;
	p->size = f->size;
	p->count = f->count;
	p->flags = flags_of(f);
	if (is_nested(f)) {
		ky_filter_complain(w->error,
			f->kind == KYMO_FIELD_VARIANT
				? "field '%s' is a variant: filters cannot use its fields"
				: "field '%s' is of structures: name a field of one, as in %s%s.NAME",
			f->name, f->name, f->kind == KYMO_FIELD_STRUCT ? "" : "[0]");
		return -EINVAL;
	}
	if (w->node->op == KY_OP_ELEMENT)
		return choose_element(w, f);
	if (f->kind != KYMO_FIELD_ARRAY && f->kind != KYMO_FIELD_SEQUENCE &&
		f->kind != KYMO_FIELD_BLOB)
		return put_place(w, 0);
	ky_filter_complain(
		w->error, "field '%s' has elements: name one, as in %s[0]", f->name, f->name);
	return -EINVAL;
}

/* A path, or the rest of one: "name[index].rest". */
struct path {
	const char *name;
	size_t len; /* length of the name */
	bool has_index;
	uint32_t index;
	const char *rest; /* NULL: the path ends here */
	size_t rest_len;
};

/*
 * Parses a path. Its characters have been checked, their order has not: an invalid path names no
 * field. Neither does "name[index][index].rest": no field of a program is an array of arrays.
 */
static struct path parse_path(const char *text, size_t n)
{
	struct path p = {.name = text};
	const char *dot = memchr(text, '.', n), *bracket, *c;
	uint64_t index = 0;

	p.len = dot ? (size_t)(dot - text) : n;
	if (!dot)
		return p;
	p.rest = dot + 1;
	p.rest_len = n - p.len - 1;
	bracket = memchr(text, '[', p.len);
	if (!bracket)
		return p;
	for (c = bracket + 1; c < dot && *c >= '0' && *c <= '9'; c++)
		index = KY_MIN(index * 10 + (unsigned)(*c - '0'), (uint64_t)UINT32_MAX);
	if (c + 1 != dot)
		return p;
	p.has_index = true;
	p.index = (uint32_t)index;
	p.len = (size_t)(bracket - text);
	return p;
}

static int find_in(struct walk *w, const struct kymo_field *fields, const struct kymo_field *of,
	const char *path, size_t n);

static int cannot_step_over(struct walk *w, const struct kymo_field *f, int ret)
{
	if (ret == -E2BIG)
		ky_filter_complain(w->error,
			"field '%.*s' is after more than %u fields of variable size", w->node->len,
			w->node->text, KY_FILTER_ANCHORS_MAX);
	else
		ky_filter_complain(w->error,
			is_nested(f)
				? "field '%s' is nested and its size not fixed: filters can only use fields before it"
				: "field '%s' is of an unknown kind",
			f->name);
	return -EINVAL;
}

/* Goes to the structure with this index in an array or sequence. */
static int enter_struct(struct walk *w, const struct kymo_field *f, uint32_t index)
{
	uint64_t size;
	bool fixed = measure_struct(f->ext, &size) == FIXED;
	int ret;

	if (f->kind == KYMO_FIELD_SEQUENCE && !fixed) {
		ky_filter_complain(w->error,
			"field '%s' is of structures whose size is not fixed: filters cannot use its fields",
			f->name);
		return -EINVAL;
	}
	if (f->kind == KYMO_FIELD_SEQUENCE)
		return enter_sequence(w, index, size);
	if (index >= f->count)
		return has_no_element(w, f, index);
	if (fixed) {
		w->offset += index * size;
		return 0;
	}
	ret = step_over_structs(w, f->ext, index);
	return ret < 0 ? cannot_step_over(w, f, ret) : 0;
}

/* Searches for the rest of the path in the field. */
static int look_into(struct walk *w, const struct kymo_field *f, const struct path *path)
{
	bool many = f->kind != KYMO_FIELD_STRUCT;
	int ret = 0;

	if (f->kind == KYMO_FIELD_VARIANT)
		ky_filter_complain(w->error,
			"field '%s' is a variant: filters cannot use its fields", f->name);
	else if (!is_nested(f))
		ky_filter_complain(w->error, "field '%s' has no fields", f->name);
	else if (many && !path->has_index)
		ky_filter_complain(w->error,
			"field '%s' is of several structures: name one, as in %s[0]", f->name,
			f->name);
	else if (!many && path->has_index)
		ky_filter_complain(w->error, "field '%s' has no elements", f->name);
	else
		ret = 1;
	if (!ret)
		return -EINVAL;
	ret = many ? enter_struct(w, f, path->index) : 0;
	return ret ? ret : find_in(w, f->ext, f, path->rest, path->rest_len);
}

static bool is_named(const struct kymo_field *f, const struct path *path)
{
	return strlen(f->name) == path->len && !memcmp(f->name, path->name, path->len);
}

/*
 * Returns the error for a missing name. An event without the first name is simply not meant; an
 * event with only a part of the path may be.
 */
static int is_missing(struct walk *w, const struct kymo_field *of, const struct path *path)
{
	if (of)
		ky_filter_complain(w->error, "field '%s' has no field '%.*s'", of->name,
			(int)path->len, path->name);
	else
		ky_filter_complain(
			w->error, "there is no field '%.*s'", (int)path->len, path->name);
	return of ? -EINVAL : -ENOENT;
}

/* Finds the path in fields. of: the field that contains them; NULL: they are the event's. */
static int find_in(struct walk *w, const struct kymo_field *fields, const struct kymo_field *of,
	const char *text, size_t n)
{
	struct path path = parse_path(text, n);
	const struct kymo_field *f = fields;
	int ret = 0;

	w->error->component += of != NULL;
	while (f->kind != KYMO_FIELD_END && !is_named(f, &path))
		f++;
	if (f->kind == KYMO_FIELD_END)
		return is_missing(w, of, &path);
	for (; !ret && fields != f; fields++)
		ret = step_over(w, fields);
	if (ret < 0)
		return cannot_step_over(w, fields - 1, ret);
	return path.rest ? look_into(w, f, &path) : choose_field(w, f);
}

int ky_filter_find_place(
	const struct kymo_field *f, struct ky_filter_node *n, struct ky_filter_error *error)
{
	struct walk w = {.node = n, .error = error};

	n->place = (struct ky_filter_place){0};
	error->component = 0;
	return find_in(&w, f, NULL, n->text, n->len);
}
