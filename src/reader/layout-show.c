/* SPDX-License-Identifier: MIT */
/* Which fields of a layout readers print, how, and the text before each of them. */
#include "reader/format.h"
#include "reader/layout-parts.h"
#include "reader/layout.h"

void ky_node_mark_shown(struct ky_node *node)
{
	bool any = !node->n;

	for (uint32_t i = node->n; i-- > 0;) {
		ky_node_mark_shown(&node->children[i]);
		any = any || node->children[i].is_shown;
	}
	switch ((enum ky_node_kind)node->kind) {
	case KY_NODE_INT:
		node->is_shown = node->is_shown || /* a shown field depends on it */
				 (!node->is_mapped &&
					 (node->role == KY_ROLE_NONE || node->role >= KY_ROLE_CPU));
		break;
	case KY_NODE_FLOAT:
	case KY_NODE_STRING:
		node->is_shown = true;
		break;
	default:
		node->is_shown = any;
	}
	if (node->is_shown && node->depends_on)
		node->depends_on->is_shown = true;
	for (uint32_t i = 0; node->kind == KY_NODE_VARIANT && i < node->n; i++)
		node->children[i].is_shown = any;
}

/* Makes the text before the value of a member. Returns 0 or -ENOMEM. */
static int make_lead(struct ky_node *node, const char *before, struct ky_arena *arena)
{
	size_t before_len = strlen(before), name_len = strlen(node->name);
	char *lead = ky_arena_alloc(arena, ky_align_up(before_len + name_len + 3, KY_LEAD_PAD));

	if (!lead)
		return -ENOMEM;
	memcpy(lead, before, before_len);
	memcpy(lead + before_len, node->name, name_len);
	memcpy(lead + before_len + name_len, " = ", 3);
	node->lead = lead;
	node->lead_len = (uint32_t)(before_len + name_len + 3);
	return 0;
}

/* Makes the text before the value of a member in JSON, with the comma behind another member. */
static int make_json_lead(struct ky_node *node, const char *name, struct ky_arena *arena)
{
	struct ky_buf text = {0};
	char *lead;

	if (!name)
		return -ENOMEM;
	ky_buf_puts(&text, ", ");
	ky_format_json_string(&text, name, strlen(name));
	ky_buf_puts(&text, ": ");
	lead = text.error ? NULL
			  : ky_arena_alloc(arena, ky_align_up(text.len, KY_LEAD_PAD) + KY_LEAD_PAD);
	if (lead) {
		memcpy(lead, text.data, text.len);
		node->json_lead = lead;
		node->json_lead_len = (uint32_t)text.len;
	}
	ky_buf_deinit(&text);
	return lead ? 0 : -ENOMEM;
}

/*
 * A structure or variant may have the members x and _x. The second one then keeps its "_", except
 * in text.
 */
static int choose_name(const struct ky_node *parent, struct ky_node *member, struct ky_names *names)
{
	const char *name;

	if (member->name == member->full_name)
		return 0;
	name = ky_names_intern(names, member->name, SIZE_MAX);
	if (!name)
		return -ENOMEM;
	member->keeps_name = ky_names_find(names, parent, name) != UINT32_MAX;
	return 0;
}

int ky_node_make_leads(struct ky_node *node, struct ky_names *names, struct ky_arena *arena)
{
	const char *before = " ";
	int r = 0;

	for (uint32_t i = 0; i < node->n && !r; i++) {
		struct ky_node *child = &node->children[i];

		r = ky_node_make_leads(child, names, arena);
		if (!r)
			r = choose_name(node, child, names);
		if (r || node->kind != KY_NODE_STRUCT || !child->is_shown)
			continue;
		node->shown_begin = node->shown_end ? node->shown_begin : i;
		node->shown_end = i + 1;
		r = make_lead(child, before, arena);
		if (!r)
			r = make_json_lead(child, ky_node_path_name(child), arena);
		before = ", ";
	}
	return r;
}

bool ky_node_is_only_cpu(const struct ky_node *packet)
{
	for (uint32_t i = 0; i < packet->n; i++) {
		if (packet->children[i].is_shown && packet->children[i].role != KY_ROLE_CPU)
			return false;
	}
	return true;
}

/* The scopes of contexts, from the outer to the inner ones; each owns its members' names. */
struct contexts {
	struct ky_names *names;
	struct ky_arena *arena;
	struct ky_node *scopes[3];
	size_t n;
};

static bool has_name(const struct contexts *c, const char *name, size_t n_scopes)
{
	for (size_t i = 0; i < n_scopes; i++) {
		if (ky_names_find(c->names, c->scopes[i], name) != UINT32_MAX)
			return true;
	}
	return false;
}

/* Adds a name to those of the last scope, and returns it; NULL without memory. */
static const char *add_name(struct contexts *c, const char *text)
{
	const char *name = ky_names_intern(c->names, text, SIZE_MAX);
	uint32_t *number = name ? ky_names_at(c->names, c->scopes[c->n - 1], name) : NULL;

	if (number)
		*number = 0;
	return number ? name : NULL;
}

/* A name that an outer scope has, too, gets "_" behind it, more of them if that is taken. */
static int rename_member(struct contexts *c, struct ky_node *member)
{
	const char *name = ky_names_intern(c->names, member->name, SIZE_MAX);
	struct ky_buf longer = {0};

	if (!name || !member->is_shown || !has_name(c, name, c->n - 1))
		return name ? 0 : -ENOMEM;
	ky_buf_puts(&longer, name);
	while (name && has_name(c, name, c->n)) {
		ky_buf_puts(&longer, "_");
		name = longer.error ? NULL : ky_names_intern(c->names, longer.data, SIZE_MAX);
	}
	ky_buf_deinit(&longer);
	return make_json_lead(member, name ? add_name(c, name) : NULL, c->arena);
}

/* Adds a scope behind the others. scope may be NULL. */
static int add_context(struct contexts *c, struct ky_node *scope)
{
	int r = 0;

	if (!scope)
		return 0;
	c->scopes[c->n++] = scope;
	for (uint32_t i = 0; i < scope->n; i++) {
		if (!add_name(c, scope->children[i].name))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < scope->n && c->n > 1 && !r; i++)
		r = rename_member(c, &scope->children[i]);
	return r;
}

int ky_stream_class_name_contexts(
	struct ky_stream_class *s, struct ky_names *names, struct ky_arena *arena)
{
	struct contexts c = {.names = names, .arena = arena};
	size_t n_common;
	int r = 0;

	if (s->packet_context && !ky_node_is_only_cpu(s->packet_context))
		r = add_context(&c, s->packet_context);
	if (!r)
		r = add_context(&c, s->event_context);
	n_common = c.n;
	for (size_t i = 0; n_common && i < s->n_events && !r; i++) {
		c.n = n_common;
		r = add_context(&c, s->events[i].context);
	}
	return r;
}

void ky_node_mark_hidden(struct ky_node *node)
{
	node->is_shown = false;
	for (uint32_t i = 0; i < node->n; i++)
		ky_node_mark_hidden(&node->children[i]);
}

struct show_choice {
	enum ky_show (*show)(const void *arg, const char *name, unsigned base);
	const void *arg;
};

static void choose_show(const struct show_choice *c, struct ky_node *n, const char *name)
{
	if (!n)
		return;
	if (n->kind == KY_NODE_INT && n->is_number) {
		n->show = c->show(c->arg, name, n->base);
		n->is_number = !n->show;
	}
	for (uint32_t i = 0; i < n->n && n->kind != KY_NODE_INT; i++)
		choose_show(c, &n->children[i], ky_node_is_list(n) ? name : n->children[i].name);
}

void ky_layout_choose_show(struct ky_layout *l,
	enum ky_show (*show)(const void *arg, const char *name, unsigned base), const void *arg)
{
	const struct show_choice c = {show, arg};

	for (size_t i = 0; i < l->n_streams; i++) {
		struct ky_stream_class *s = &l->streams[i];

		choose_show(&c, s->event_context, "");
		for (size_t k = 0; k < s->n_events; k++) {
			choose_show(&c, s->events[k].context, "");
			choose_show(&c, s->events[k].fields, "");
		}
	}
}
