/* SPDX-License-Identifier: MIT */
/*
 * A path is known by the first node that has it. The table of names leads from the node of the
 * outer path and a name to the node of the inner path, in constant time. The addresses of two
 * members of a node stand for it as owners, so that paths of values, paths that go on, and the
 * layout's own entries stay apart.
 */
#include "reader/layout-parts.h"

#include "base/vec.h"
#include "reader/layout.h"

struct linker {
	struct ky_names *names;
	KY_VEC(struct ky_node *) nodes; /* by the numbers in the table */
};

static const char unnamed[] = "";

/* Finds the first node of a path in *ret_first; it becomes n if there is none. */
static int find_first(struct linker *l, struct ky_node *n, const void *owner, const char *name,
	struct ky_node **ret_first)
{
	uint32_t *number = ky_names_at(l->names, owner, name);

	if (!number)
		return -ENOMEM;
	if (*number == UINT32_MAX) {
		*number = (uint32_t)l->nodes.n;
		if (ky_vec_add(&l->nodes, n) < 0)
			return -ENOMEM;
	}
	*ret_first = l->nodes.v[*number];
	return 0;
}

static int link_value(struct linker *l, struct ky_node *n, const struct ky_node *outer)
{
	struct ky_node *first;
	int r = find_first(l, n, &outer->first, *n->name ? n->full_name : unnamed, &first);

	if (r < 0 || first == n)
		return r;
	n->first = first;
	n->twin = first->twin;
	first->twin = n;
	return 0;
}

static int link_node(struct linker *l, struct ky_node *n, struct ky_node *outer);

static int link_children(struct linker *l, struct ky_node *n, struct ky_node *outer)
{
	int r = 0;

	for (uint32_t i = 0; i < n->n && !r; i++) {
		if (n->children[i].is_shown)
			r = link_node(l, &n->children[i], outer);
	}
	return r;
}

static bool has_members(const struct ky_node *n)
{
	return n->kind == KY_NODE_STRUCT || n->kind == KY_NODE_VARIANT;
}

/* outer: the first node of the path of the structure or variant; NULL: outside of variants. */
static int link_node(struct linker *l, struct ky_node *n, struct ky_node *outer)
{
	int r = 0;

	if (has_members(n)) {
		if (outer && *n->name)
			r = find_first(l, n, &outer->twin, n->full_name, &outer);
		if (!outer && n->kind == KY_NODE_VARIANT)
			outer = n;
		return r ? r : link_children(l, n, outer);
	}
	if (outer)
		r = link_value(l, n, outer);
	/* Each element has its own values. */
	return r ? r : link_children(l, n, NULL);
}

int ky_twins_link(struct ky_names *names, struct ky_node *scope)
{
	struct linker l = {.names = names};
	int r = link_node(&l, scope, NULL);

	ky_vec_deinit(&l.nodes);
	return r;
}
