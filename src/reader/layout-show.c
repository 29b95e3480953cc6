/* SPDX-License-Identifier: MIT */
/* Which fields of a layout readers print, how, and the text before each of them. */
#include "reader/format.h"
#include "reader/layout-parts.h"

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
static int make_json_lead(struct ky_node *node, struct ky_arena *arena)
{
	struct ky_buf text = {0};
	char *lead;

	ky_buf_puts(&text, ", ");
	ky_format_json_string(&text, node->name, strlen(node->name));
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

int ky_node_make_leads(struct ky_node *node, struct ky_arena *arena)
{
	const char *before = " ";
	int r = 0;

	for (uint32_t i = 0; i < node->n && !r; i++) {
		struct ky_node *child = &node->children[i];

		r = ky_node_make_leads(child, arena);
		if (r || node->kind != KY_NODE_STRUCT || !child->is_shown)
			continue;
		node->shown_begin = node->shown_end ? node->shown_begin : i;
		node->shown_end = i + 1;
		r = make_lead(child, before, arena);
		if (!r)
			r = make_json_lead(child, arena);
		before = ", ";
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
