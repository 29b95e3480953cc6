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

static bool is_called(const char *name, const char *path, size_t len)
{
	return !strncmp(name, path, len) && !name[len];
}

static const struct ky_node *find_child(const struct ky_node *n, const char *path, size_t len)
{
	for (uint32_t i = 0; i < n->n; i++) {
		const struct ky_node *c = &n->children[i];

		if (c->is_shown &&
			(is_called(c->name, path, len) || is_called(c->full_name, path, len)))
			return c;
	}
	return NULL;
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

	if (((*n)->kind != KY_NODE_ARRAY && (*n)->kind != KY_NODE_SEQUENCE) || f->has_element ||
		f->occurrence || !parse_index(path, &index))
		return false;
	if ((*n)->is_scalars) {
		f->has_element = true;
		f->element = index;
		return true;
	}
	f->occurrence = index;
	*n = (*n)->children;
	return true;
}

/* Follows a path from a structure. Returns false if it leads nowhere. */
static bool follow_path(struct ky_field_ref *f, const struct ky_node *n, const char *path)
{
	while (n) {
		size_t len = strcspn(path, ".[");

		if ((n->kind != KY_NODE_STRUCT && n->kind != KY_NODE_VARIANT) || f->has_element)
			return false;
		n = find_child(n, path, len);
		path += len;
		if (n && *path == '[' && !add_index(f, &n, &path))
			return false;
		if (!*path)
			break;
		if (*path++ != '.')
			return false;
	}
	f->node = n;
	return n && n->kind != KY_NODE_STRUCT && n->kind != KY_NODE_VARIANT;
}

/*
 * Returns the place of the field in the record's body. It is known only if all members before it
 * have known sizes.
 */
static uint64_t place_of(const struct ky_event_class *e, const struct ky_field_ref *f)
{
	uint64_t bits = 0;

	if (f->scope == KY_SCOPE_PACKET_CONTEXT || f->occurrence || f->has_element ||
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

bool ky_field_find(struct ky_field_ref *ret, const struct ky_event_class *e, const char *path)
{
	static const enum ky_scope order[] = {KY_SCOPE_FIELDS, KY_SCOPE_SPECIFIC_CONTEXT,
		KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_PACKET_CONTEXT};
	bool is_context = !strncmp(path, "$ctx.", 5);

	for (size_t i = is_context; i < KY_ARRAY_SIZE(order); i++) {
		const struct ky_node *scope = scope_of(e, order[i]);

		*ret = (struct ky_field_ref){.scope = order[i], .place = KY_FIELD_ANYWHERE};
		if (!scope || !scope->is_shown ||
			!follow_path(ret, scope, is_context ? path + 5 : path))
			continue;
		ret->place = place_of(e, ret);
		return true;
	}
	ret->node = NULL;
	return false;
}

/* --- values --- */

/* An element of an array of plain numbers, or a character of a text. */
static bool get_element(const struct ky_field_ref *f, struct ky_field_value *ret)
{
	const struct ky_value *array = ret->v;
	const struct ky_node *elem = f->node->children;
	uint64_t at;

	if (f->element >= array->n)
		return false;
	ret->storage = (struct ky_value){.node = elem};
	if (f->node->is_text) {
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

static const struct ky_value *find_value(struct ky_field_ref *f, const struct ky_item *item)
{
	const struct ky_scope_values *scope = &item->scopes[f->scope];
	const struct ky_value *v = ky_item_values(item, f->scope);
	uint32_t occurrence = 0;

	if (f->guess < scope->n && v[f->guess].node == f->node && !f->occurrence)
		return &v[f->guess];
	for (size_t i = 0; i < scope->n; i++) {
		if (v[i].node != f->node || occurrence++ != f->occurrence)
			continue;
		f->guess = i;
		return &v[i];
	}
	return NULL;
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
