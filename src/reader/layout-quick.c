/* SPDX-License-Identifier: MIT */
/* Shortcuts: what readers read or print without looking at each field of a layout. */
#include "reader/layout-parts.h"
#include "reader/layout.h"

/* --- reading --- */

bool ky_node_is_plain(const struct ky_node *elem)
{
	return (elem->kind == KY_NODE_INT || elem->kind == KY_NODE_FLOAT) && !elem->is_mapped &&
	       !elem->is_leb && elem->role == KY_ROLE_NONE;
}

/*
 * Returns the size of a field that can be part of a run: whole bytes at any byte, without a role. 0
 * for others.
 */
static uint64_t flat_bits(const struct ky_node *node)
{
	const struct ky_node *elem = node->kind == KY_NODE_ARRAY ? node->children : node;
	uint64_t count = node->kind == KY_NODE_ARRAY ? node->count : 1;

	if (!ky_node_is_plain(elem) || elem->is_asked || elem->align != 8 || elem->size % 8 ||
		node->align != 8 || node->role != KY_ROLE_NONE || !count || count > UINT32_MAX / 64)
		return 0;
	return count * elem->size;
}

void ky_node_find_runs(struct ky_node *node)
{
	struct ky_node *next = NULL;

	for (uint32_t i = node->n; i-- > 0; next = &node->children[i]) {
		struct ky_node *child = &node->children[i];

		ky_node_find_runs(child);
		child->flat_bits = node->kind == KY_NODE_STRUCT ? flat_bits(child) : 0;
		if (!child->flat_bits)
			continue;
		child->n_run = 1 + (next ? next->n_run : 0);
		child->run_bits = child->flat_bits + (next ? next->run_bits : 0);
	}
}

void ky_node_add_bits(uint64_t *bits, const struct ky_node *scope)
{
	if (!scope || *bits == KY_NO_BITS)
		return;
	if (scope->align > 8 || (scope->n && scope->children[0].n_run != scope->n))
		*bits = KY_NO_BITS;
	else if (scope->n)
		*bits += scope->children[0].run_bits;
}

void ky_node_find_short_head(struct ky_short_head *h, const struct ky_node *header)
{
	const struct ky_node *id, *variant, *option, *time;
	const struct ky_segment *first;
	unsigned bits;

	if (!header || header->align < 8 || header->n != 2)
		return;
	id = &header->children[0];
	variant = &header->children[1];
	if (id->role != KY_ROLE_EVENT_ID || variant->kind != KY_NODE_VARIANT ||
		variant->depends_on != id || !variant->choices->segments.n)
		return;
	first = &variant->choices->segments.v[0];
	option = &variant->children[variant->choices->options[variant->choices->segments
								      .indexes[first->first]]];
	if (option->kind != KY_NODE_STRUCT || option->n != 1)
		return;
	time = &option->children[0];
	bits = id->size + time->size;
	if (time->kind != KY_NODE_INT || time->is_leb || id->is_leb || !time->is_clock ||
		time->role != KY_ROLE_NONE || id->is_clock || id->is_signed || time->is_signed ||
		id->big_endian || time->big_endian || id->size % option->align ||
		(bits != 8 && bits != 16 && bits != 32 && bits != 64))
		return;
	*h = (struct ky_short_head){.bits = bits,
		.align = header->align,
		.lo = first->lo,
		.hi = first->hi,
		.id = id,
		.time = time};
}

/* --- printing --- */

static enum ky_step_kind int_step(const struct ky_node *n)
{
	static const enum ky_step_kind kinds[9] = {
		[1] = KY_STEP_U8, [2] = KY_STEP_U16, [4] = KY_STEP_U32, [8] = KY_STEP_U64};
	enum ky_step_kind kind = kinds[n->size / 8];

	if (n->big_endian || n->base != 10 || !kind)
		return KY_STEP_INT;
	return n->is_signed ? kind + (KY_STEP_I8 - KY_STEP_U8) : kind;
}

/* Returns false if the member is none. */
static bool make_step(struct ky_step *s, const struct ky_node *n)
{
	uint64_t bits = n->kind == KY_NODE_STRING || n->is_leb ? 0
			: n->kind == KY_NODE_ARRAY	       ? n->flat_bits
							       : n->size;

	if (n->align != 8 || n->is_asked || n->is_clock || bits % 8 || bits / 8 > UINT32_MAX ||
		(n->is_shown && KY_MAX(n->lead_len, n->json_lead_len) > UINT8_MAX))
		return false;
	*s = (struct ky_step){.kind = KY_STEP_HIDDEN,
		.lead_len = (uint8_t)n->lead_len,
		.json_lead_len = (uint8_t)n->json_lead_len,
		.bytes = (uint32_t)(bits / 8),
		.lead = n->lead,
		.json_lead = n->json_lead,
		.node = n};
	if (!n->is_shown)
		return bits;
	if (n->kind == KY_NODE_INT && n->is_number)
		s->kind = (uint8_t)int_step(n);
	else if (n->kind == KY_NODE_FLOAT)
		s->kind = KY_STEP_FLOAT;
	else if (n->kind == KY_NODE_STRING && n->encoding == KY_UTF_8)
		s->kind = KY_STEP_STRING;
	else if (n->kind == KY_NODE_ARRAY && n->is_text && n->encoding == KY_UTF_8)
		s->kind = KY_STEP_TEXT;
	return s->kind != KY_STEP_HIDDEN && (bits || s->kind == KY_STEP_STRING);
}

static void find_steps(struct ky_node *scope, struct ky_arena *arena)
{
	struct ky_step *steps = scope && scope->n ? ky_arena_alloc(arena, scope->n * sizeof(*steps))
						  : NULL;
	uint32_t n = 0;

	while (steps && n < scope->n && make_step(&steps[n], &scope->children[n]))
		n++;
	if (!steps || n < scope->n)
		return;
	scope->steps = steps;
	scope->n_steps = n;
	for (uint32_t i = 0; i < n; i++) {
		if (!steps[i].bytes) {
			scope->step_bytes = 0;
			return;
		}
		scope->step_bytes += steps[i].bytes;
	}
}

void ky_layout_find_steps(struct ky_layout *l, struct ky_arena *arena)
{
	for (size_t i = 0; i < l->n_streams; i++) {
		struct ky_stream_class *s = &l->streams[i];

		find_steps(s->event_context, arena);
		for (size_t k = 0; k < s->n_events; k++) {
			find_steps(s->events[k].context, arena);
			find_steps(s->events[k].fields, arena);
		}
	}
}
