/* SPDX-License-Identifier: MIT */
/* Where fields lie in a packed record (include/kymo/types.h). */
#include "filter/insn.h"
#include "filter/place.h"

/* Bytes of a scalar; 0: no scalar of a size that there is. */
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

static enum extent measure(
	const struct kymo_field *f, uint64_t *ret_size, struct ky_filter_step *step);

/* Of a structure whose fields all have a size that is known; else 0. */
static uint64_t struct_size(const struct kymo_field *fields)
{
	struct ky_filter_step unused;
	uint64_t size, sum = 0;

	for (; fields->kind != KYMO_FIELD_END; fields++) {
		if (measure(fields, &size, &unused) != FIXED)
			return 0;
		sum += size;
		if (sum > INT32_MAX)
			return 0;
	}
	return sum;
}

/* Bytes of a field, or how to step over it. */
static enum extent measure(
	const struct kymo_field *f, uint64_t *ret_size, struct ky_filter_step *step)
{
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
		size = f->elem == KYMO_FIELD_STRUCT ? struct_size(f->ext)
						    : scalar_size(f->elem, f->size);
		*ret_size = size * f->count;
		if (f->kind == KYMO_FIELD_ARRAY && size)
			return FIXED;
		*step = (struct ky_filter_step){
			.kind = f->kind, .count = f->count, .size = (uint8_t)size};
		return (size && size <= UINT8_MAX) || f->elem == KYMO_FIELD_STRING ? VARIABLE
										   : UNKNOWN;
	case KYMO_FIELD_STRUCT:
		*ret_size = struct_size(f->ext);
		return *ret_size ? FIXED : UNKNOWN;
	default:
		*ret_size = scalar_size(f->kind, f->size);
		return *ret_size ? FIXED : UNKNOWN;
	}
}

void ky_filter_steps(
	const struct kymo_field *fields, unsigned n_anchors, struct ky_filter_step *steps)
{
	uint64_t size = 0, offset = 0;
	struct ky_filter_step step;
	unsigned n = 0;

	for (; n < n_anchors; fields++) {
		if (measure(fields, &size, &step) == FIXED) {
			offset += size;
			continue;
		}
		step.skip = (uint32_t)offset;
		steps[n++] = step;
		offset = 0;
	}
}

static bool is_nested(const struct kymo_field *f)
{
	return f->kind == KYMO_FIELD_STRUCT || f->kind == KYMO_FIELD_VARIANT ||
	       f->elem == KYMO_FIELD_STRUCT;
}

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

/* Takes the node for the field, or for an element of it. */
static int choose(
	struct ky_filter_node *n, const struct kymo_field *f, struct ky_filter_error *error)
{
	struct ky_filter_place *p = &n->place;
	bool has_elements = f->kind >= KYMO_FIELD_ARRAY && f->kind <= KYMO_FIELD_BLOB,
	     fixed = f->kind == KYMO_FIELD_ARRAY || f->kind == KYMO_FIELD_TEXT;

	p->kind = f->kind;
	p->elem = f->elem;
	p->size = f->size;
	p->count = f->count;
	p->flags = flags_of(f);
	if (is_nested(f)) {
		ky_filter_complain(error,
			"field '%s' is of structures: filters cannot look into these", f->name);
		return -EINVAL;
	}
	if (n->op == KY_OP_FIELD) {
		if (f->kind != KYMO_FIELD_ARRAY && f->kind != KYMO_FIELD_SEQUENCE &&
			f->kind != KYMO_FIELD_BLOB)
			return 0;
		ky_filter_complain(
			error, "field '%s' has elements: name one, as in %s[0]", f->name, f->name);
		return -EINVAL;
	}
	if (!has_elements) {
		ky_filter_complain(error, "field '%s' has no elements", f->name);
		return -EINVAL;
	}
	if (fixed && n->index >= f->count) {
		ky_filter_complain(error, "field '%s' has no element %u: it has %u of them",
			f->name, n->index, f->count);
		return -EINVAL;
	}
	if (f->kind >= KYMO_FIELD_TEXT) { /* its bytes */
		p->kind = fixed ? KYMO_FIELD_ARRAY : KYMO_FIELD_SEQUENCE;
		p->elem = KYMO_FIELD_UINT;
		p->size = 1;
		p->flags = 0;
	}
	return 0;
}

/* What can lie before the field is said in the order of the record. */
static int put_behind(
	struct ky_filter_node *n, uint64_t offset, unsigned anchor, struct ky_filter_error *error)
{
	if (anchor > KY_FILTER_ANCHORS_MAX) {
		ky_filter_complain(error,
			"field '%.*s' lies behind more than %u fields of variable size", n->len,
			n->text, KY_FILTER_ANCHORS_MAX);
		return -EINVAL;
	}
	n->place.anchor = (uint8_t)anchor;
	n->place.offset = (uint32_t)offset;
	return 0;
}

int ky_filter_find_place(
	const struct kymo_field *f, struct ky_filter_node *n, struct ky_filter_error *error)
{
	uint64_t size = 0, offset = 0;
	struct ky_filter_step unused;
	unsigned anchor = 0;
	int ret;

	for (; f->kind != KYMO_FIELD_END; f++) {
		enum extent extent = measure(f, &size, &unused);

		if (extent == UNKNOWN || offset + size > INT32_MAX) {
			ky_filter_complain(error,
				is_nested(f)
					? "field '%s' is nested and its size not fixed: filters can ask for fields before it only"
					: "field '%s' is of an unknown kind",
				f->name);
			return -EINVAL;
		}
		if (strlen(f->name) == n->len && !memcmp(f->name, n->text, n->len)) {
			ret = choose(n, f, error);
			return ret ? ret : put_behind(n, offset, anchor, error);
		}
		offset = extent == FIXED ? offset + size : 0;
		anchor += extent == VARIABLE;
	}
	ky_filter_complain(error, "there is no field '%.*s'", n->len, n->text);
	return -ENOENT;
}
