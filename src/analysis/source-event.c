/* SPDX-License-Identifier: MIT */
#include "analysis/source-event.h"

#include <math.h>

#include "base/hash.h"
#include "reader/format.h"

static const struct ky_value *value_of(const struct ky_source_event *e, const struct ky_field *f)
{
	const struct ky_scope_values *scope = f ? &e->item->scopes[f->scope] : NULL;

	if (!scope || !scope->node || f->i >= scope->n)
		return NULL;
	return &ky_item_values(e->item, (enum ky_scope)f->scope)[f->i];
}

int64_t ky_source_number(
	const struct ky_source_event *e, enum ky_event_field field, int64_t otherwise)
{
	const struct ky_value *v = value_of(e, e->class->known[field]);

	return v && v->node->kind == KY_NODE_INT ? (int64_t)v->u : otherwise;
}

uint64_t ky_source_bits(const struct ky_source_event *e, const struct ky_field *f)
{
	const struct ky_value *v = value_of(e, f);

	if (v && (v->node->is_text || v->node->kind == KY_NODE_STRING))
		return ky_hash_add(KY_HASH_BASIS, v->text, v->n);
	return v && (v->node->kind == KY_NODE_INT || v->node->kind == KY_NODE_FLOAT) ? v->u : 0;
}

uint64_t ky_source_id(const struct ky_source_event *e)
{
	return ky_source_bits(e, e->class->known[KY_FIELD_SPAN]);
}

static struct ky_fact fact_of(struct ky_texts *names, const struct ky_value *v)
{
	const struct ky_node *n = v->node;
	uint32_t at = 0;
	const char *label = n->is_enum ? ky_enum_label(n, v->u, &at) : NULL;

	if (label)
		return (struct ky_fact){KY_FACT_TEXT,
			.text = ky_texts_add(names, label, strlen(label)),
			.length = (uint32_t)strlen(label)};
	switch ((enum ky_node_kind)n->kind) {
	case KY_NODE_INT:
		if (!n->is_signed && v->u > INT64_MAX)
			return (struct ky_fact){KY_FACT_REAL, .real = (double)v->u};
		return (struct ky_fact){
			KY_FACT_INT, .is_hex = n->base == 16, .number = (int64_t)v->u};
	case KY_NODE_FLOAT:
		return (struct ky_fact){KY_FACT_REAL, .real = v->f};
	case KY_NODE_STRING:
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		return (struct ky_fact){KY_FACT_TEXT, .text = ky_texts_add(names, v->text, v->n),
			.length = (uint32_t)KY_MIN(strnlen(v->text, v->n), UINT32_MAX)};
	case KY_NODE_STRUCT:
	case KY_NODE_VARIANT:
		break;
	}
	return (struct ky_fact){.type = KY_FACT_NONE};
}

double ky_source_real(const struct ky_source_event *e, const struct ky_field *f)
{
	const struct ky_value *v = value_of(e, f);

	if (!v || v->node->is_enum)
		return NAN;
	switch ((enum ky_node_kind)v->node->kind) {
	case KY_NODE_INT:
		return v->node->is_signed ? (double)(int64_t)v->u : (double)v->u;
	case KY_NODE_FLOAT:
		return v->f;
	case KY_NODE_STRING:
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		return (double)strnlen(v->text, v->n);
	case KY_NODE_STRUCT:
	case KY_NODE_VARIANT:
		break;
	}
	return NAN;
}

bool ky_source_has_number(const struct ky_source_event *e, const struct ky_field *f)
{
	const struct ky_value *v = value_of(e, f);

	return v && !v->node->is_enum &&
	       (v->node->kind == KY_NODE_INT || v->node->kind == KY_NODE_FLOAT);
}

struct ky_fact ky_source_event_fact(
	struct ky_texts *names, const struct ky_source_event *e, const struct ky_field *f)
{
	const struct ky_value *v = value_of(e, f);

	return v ? fact_of(names, v) : (struct ky_fact){.type = KY_FACT_NONE};
}

void ky_source_stack(const struct ky_source_event *e, uint64_t *ret_stack, size_t n)
{
	struct ky_field_ref callers = e->class->callers;
	struct ky_field_value list;
	const struct ky_node *elem;

	memset(ret_stack, 0, n * sizeof(*ret_stack));
	ret_stack[0] = (uint64_t)ky_source_number(e, KY_FIELD_ADDRESS, 0);
	if (!callers.node || !ky_field_get(&callers, e->item, &list) || !list.v->node->is_scalars)
		return;
	elem = list.v->node->children;
	for (uint64_t i = 0; i < list.v->n && i + 1 < n && elem->kind == KY_NODE_INT; i++)
		ret_stack[i + 1] = ky_read_int(
			list.data, list.v->at + i * ky_node_stride(elem), elem);
}
