/* SPDX-License-Identifier: MIT */
#include "reader/field.h"

static const struct ky_node *scope_of(const struct ky_event_class *e, enum ky_scope scope)
{
	switch (scope) {
	case KY_SCOPE_PACKET_CONTEXT:
		return e->stream->packet_context;
	case KY_SCOPE_EVENT_CONTEXT:
		return e->stream->event_context;
	case KY_SCOPE_SPECIFIC_CONTEXT:
		return e->context;
	default:
		return e->fields;
	}
}

/* Parses "[N]" at *path, and moves *path behind it. Returns false if there is none. */
static bool parse_index(const char **path, uint32_t *ret_index)
{
	char *end;
	unsigned long long index;

	if ((*path)[1] < '0' || (*path)[1] > '9')
		return false;
	index = strtoull(*path + 1, &end, 10);
	if (*end != ']' || index > UINT32_MAX)
		return false;
	*path = end + 1;
	*ret_index = (uint32_t)index;
	return true;
}

/* Parses the index behind the name of an array. */
static bool add_index(struct ky_field_ref *f, const struct ky_node **n, const char **path)
{
	uint32_t index;

	if (!ky_node_is_list(*n) || f->has_element ||
		(!(*n)->is_scalars && f->n_outer == KY_ARRAY_SIZE(f->outer)) ||
		!parse_index(path, &index))
		return false;
	if ((*n)->is_scalars) {
		f->has_element = true;
		f->element = index;
		return true;
	}
	f->outer[f->n_outer++] = (struct ky_field_outer){.array = *n, .index = index};
	*n = (*n)->children;
	return true;
}

/* Compares the path's begin with a name, in which `\` may be before a character of the path. */
static const char *skip_text(const char *path, const char *name)
{
	for (; *name; name++, path++) {
		if (*path == '\\' && *path != *name)
			path++;
		if (*path != *name)
			return NULL;
	}
	return strchr(".[", *path) ? path : NULL;
}

/* Returns the path behind the name of a member, or NULL if it begins with another name. */
static const char *skip_name(const struct ky_node *n, const char *path)
{
	const char *rest = skip_text(path, ky_node_path_name(n));

	return rest ? rest : skip_text(path, n->full_name);
}

bool ky_field_is_special(const struct ky_node *n)
{
	return n->name[strcspn(n->name, ".[\\")];
}

static bool has_members(const struct ky_node *n)
{
	return n->kind == KY_NODE_STRUCT || n->kind == KY_NODE_VARIANT;
}

static bool follow_path(
	struct ky_field_ref *f, const struct ky_node *n, const char *path, bool is_begin);

/*
 * Follows a path to a member. A member without a name has the path of its structure. Names with the
 * characters of paths come last, because they can be written with `\` before these.
 */
static bool follow_member(
	struct ky_field_ref *f, const struct ky_node *n, const char *path, bool is_begin)
{
	const char *at = is_begin ? path : *path == '.' ? path + 1 : NULL;

	for (int is_special = 0; is_special < 2; is_special++) {
		for (const struct ky_node *c = n->children; c < n->children + n->n; c++) {
			const char *rest = !*c->name ? path : at ? skip_name(c, at) : NULL;

			if (c->is_shown && rest && ky_field_is_special(c) == is_special &&
				follow_path(f, c, rest, is_begin && !*c->name))
				return true;
		}
	}
	return false;
}

/* Returns the node of the first value of a structure or variant, or NULL if it has none. */
static const struct ky_node *first_value(const struct ky_node *n)
{
	const struct ky_node *found = NULL;

	if (n->kind != KY_NODE_STRUCT)
		return n;
	for (uint32_t i = 0; i < n->n && !found; i++) {
		if (n->children[i].is_shown)
			found = first_value(&n->children[i]);
	}
	return found;
}

/*
 * Follows the path behind a node. is_begin: no name is before it. Returns false if it leads
 * nowhere. Each node of the layout has one place in the path, and is visited once.
 */
static bool follow_path(
	struct ky_field_ref *f, const struct ky_node *n, const char *path, bool is_begin)
{
	const struct ky_field_ref before = *f;

	while (*path == '[') {
		if (!add_index(f, &n, &path))
			break;
	}
	if (!*path && !has_members(n) && !f->is_whole)
		f->node = n->first ? n->first : n;
	if (!*path && has_members(n) && f->is_whole && !is_begin) {
		f->node = first_value(n);
		f->whole = n;
	}
	if (f->node || (!f->has_element && has_members(n) && follow_member(f, n, path, is_begin)))
		return true;
	*f = before;
	return false;
}

/*
 * Returns the place of the field in the record's body. It is known only if all members before it
 * have known sizes.
 */
static uint64_t place_of(const struct ky_event_class *e, const struct ky_field_ref *f)
{
	uint64_t bits = 0;

	if (f->scope == KY_SCOPE_PACKET_CONTEXT || f->is_whole || f->n_outer || f->has_element ||
		!f->node->flat_bits)
		return KY_FIELD_ANYWHERE;
	for (enum ky_scope s = KY_SCOPE_EVENT_CONTEXT; s <= f->scope; s++) {
		const struct ky_node *scope = scope_of(e, s);

		if (scope && scope->align > 8)
			return KY_FIELD_ANYWHERE;
		for (uint32_t i = 0; scope && i < scope->n; i++) {
			const struct ky_node *c = &scope->children[i];

			if (!c->flat_bits)
				return KY_FIELD_ANYWHERE;
			if (c == f->node)
				return bits;
			bits += c->flat_bits;
		}
	}
	return KY_FIELD_ANYWHERE;
}

static bool find_in_scope(struct ky_field_ref *ret, const struct ky_event_class *e,
	enum ky_scope scope, const char *path, bool is_whole)
{
	const struct ky_node *n = scope_of(e, scope);

	*ret = (struct ky_field_ref){
		.scope = scope, .is_whole = is_whole, .place = KY_FIELD_ANYWHERE};
	if (!n || !n->is_shown || !follow_path(ret, n, path, true))
		return false;
	ret->place = place_of(e, ret);
	return true;
}

static bool find_field(
	struct ky_field_ref *ret, const struct ky_event_class *e, const char *path, bool is_whole)
{
	static const enum ky_scope order[] = {KY_SCOPE_FIELDS, KY_SCOPE_SPECIFIC_CONTEXT,
		KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_PACKET_CONTEXT};
	bool is_context = !strncmp(path, "$ctx.", 5);

	for (size_t i = is_context; i < KY_ARRAY_SIZE(order); i++) {
		if (find_in_scope(ret, e, order[i], is_context ? path + 5 : path, is_whole))
			return true;
	}
	/* The name of a field may begin like this in CTF 2. */
	return is_context && find_in_scope(ret, e, KY_SCOPE_FIELDS, path, is_whole);
}

bool ky_field_find(struct ky_field_ref *ret, const struct ky_event_class *e, const char *path)
{
	return find_field(ret, e, path, false);
}

bool ky_field_find_whole(struct ky_field_ref *ret, const struct ky_event_class *e, const char *path)
{
	return find_field(ret, e, path, false) || find_field(ret, e, path, true);
}

/* --- values --- */

/* An element of an array of plain numbers, or a character of a text. */
static bool get_element(const struct ky_field_ref *f, struct ky_field_value *ret)
{
	const struct ky_value *array = ret->v;
	const struct ky_node *node = array->node, *elem = node->children;
	uint64_t at;

	if (!node->is_scalars || f->element >= array->n)
		return false;
	ret->storage = (struct ky_value){.node = elem};
	if (node->is_text) {
		ret->storage.u = (unsigned char)array->text[f->element];
	} else {
		at = array->at + f->element * ky_node_stride(elem);
		if (elem->kind == KY_NODE_FLOAT)
			ret->storage.f = ky_read_float(ret->data, at, elem);
		else
			ret->storage.u = ky_read_int(ret->data, at, elem);
	}
	ret->v = &ret->storage;
	return true;
}

/* Returns the value behind those of a node. */
static const struct ky_value *skip_values(
	const struct ky_node *n, const struct ky_value *v, const struct ky_value *end)
{
	const struct ky_value *own = v;

	if (!n->is_shown || v == end)
		return v;
	if (n->kind != KY_NODE_STRUCT)
		v++;
	if (n->kind == KY_NODE_STRUCT) {
		for (uint32_t i = 0; i < n->n; i++)
			v = skip_values(&n->children[i], v, end);
	} else if (ky_node_is_list(n) && !n->is_scalars) {
		for (uint64_t i = 0; i < own->n && v < end; i++)
			v = skip_values(n->children, v, end);
	} else if (n->kind == KY_NODE_VARIANT && own->u != KY_NO_OPTION) {
		v = skip_values(&n->children[own->u], v, end);
	}
	return v;
}

/*
 * Within one element of each array around it, a node has one value at most. Returns it, or NULL.
 */
static const struct ky_value *find_node(const struct ky_node *n, bool is_whole,
	const struct ky_value *v, const struct ky_value *end)
{
	for (; v < end; v++) {
		if (v->node == n || (v->node->first == n && !is_whole))
			return v;
	}
	return NULL;
}

/*
 * Narrows the values to those of the elements that the path leads through. Returns false if an
 * array has no such element.
 */
static bool enter_elements(
	const struct ky_field_ref *f, const struct ky_value **v, const struct ky_value **end)
{
	for (uint32_t k = 0; k < f->n_outer; k++) {
		const struct ky_node *array = f->outer[k].array;
		const struct ky_value *found = find_node(array, true, *v, *end);

		if (!found || f->outer[k].index >= found->n)
			return false;
		*v = found + 1;
		for (uint32_t i = 0; i < f->outer[k].index && *v < *end; i++)
			*v = skip_values(array->children, *v, *end);
		*end = skip_values(array->children, *v, *end);
	}
	return true;
}

static const struct ky_value *find_value(struct ky_field_ref *f, const struct ky_item *item)
{
	const struct ky_value *begin = ky_item_values(item, f->scope), *v = begin;
	const struct ky_value *end = v + item->scopes[f->scope].n;

	if (f->n_outer)
		return enter_elements(f, &v, &end) ? find_node(f->node, f->is_whole, v, end) : NULL;
	if (f->guess < (size_t)(end - v) &&
		(v = find_node(f->node, f->is_whole, begin + f->guess, begin + f->guess + 1)))
		return v;
	v = find_node(f->node, f->is_whole, begin, end);
	if (v)
		f->guess = (size_t)(v - begin);
	return v;
}

bool ky_field_get(struct ky_field_ref *f, const struct ky_item *item, struct ky_field_value *ret)
{
	if (!f->node)
		return false;
	if (f->place != KY_FIELD_ANYWHERE) {
		ret->storage = ky_flat_value(item->d->data, item->body + f->place, f->node);
		ret->data = item->d->data;
		ret->v = &ret->storage;
	} else {
		ret->v = find_value(f, item);
		ret->data = item->scopes[f->scope].data;
	}
	return ret->v && (!f->has_element || get_element(f, ret));
}
