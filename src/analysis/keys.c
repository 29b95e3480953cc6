/* SPDX-License-Identifier: MIT */
#include "analysis/keys.h"

#include <inttypes.h>

#include "base/text.h"
#include "reader/format.h"

#define MAX_FIELDS 4 /* fields for which one name may stand */

/*
 * Fields that a name stands for: the first one that an event has. Contexts, because a field "tid"
 * of sched_waking is another thread's. perf has its own perf_* among the fields.
 */
static const struct {
	const char *name;
	const char *fields[MAX_FIELDS + 1];
} aliases[] = {
	{"process", {"$ctx.vpid", "$ctx.pid", "perf_pid"}},
	{"thread", {"$ctx.vtid", "$ctx.tid", "span_tid", "perf_tid"}},
	{"cpu", {"$ctx.cpu_id"}},
};

static bool is_alias(const char *name)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(aliases); i++)
		if (!strcmp(aliases[i].name, name))
			return true;
	return false;
}

bool ky_keys_find(struct ky_field_ref *ret, const struct ky_event_class *e, const char *name)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(aliases); i++) {
		const char *const *fields = aliases[i].fields;

		if (strcmp(aliases[i].name, name))
			continue;
		for (size_t k = 0; fields[k]; k++)
			if (ky_field_find(ret, e, fields[k]))
				return true;
		return false;
	}
	return ky_field_find(ret, e, name);
}

static const struct ky_node *number_of(const struct ky_field_ref *f)
{
	return f->has_element && f->node->n ? f->node->children : f->node;
}

/* Returns whether equal numbers of both are the same text. */
static bool is_shown_alike(const struct ky_node *a, const struct ky_node *b)
{
	return a->kind == b->kind && a->base == b->base && a->is_enum == b->is_enum &&
	       (a->size == b->size || (a->kind == KY_NODE_INT && a->base == 10));
}

/* In a trace without classes, all names are accepted. */
static int find_part_fields(
	struct ky_keys *k, struct ky_key_part *p, const struct ky_trace_reader *r, const char *name)
{
	bool known = is_alias(name) || !r->n_classes;
	const struct ky_node *first = NULL, *n;

	p->of_class = calloc(r->n_classes + 1, sizeof(*p->of_class));
	for (size_t i = 0; p->of_class && i < r->n_classes; i++) {
		if (!ky_keys_find(&p->of_class[i], r->classes[i], name))
			continue;
		known = true;
		n = number_of(&p->of_class[i]);
		first = first ? first : n;
		p->is_mixed |= !is_shown_alike(first, n);
	}
	if (p->of_class && known)
		return 0;
	k->unknown = p->of_class ? strdup(name) : NULL;
	return k->unknown ? -ENOENT : -ENOMEM;
}

static int add_part(struct ky_keys *k, const struct ky_trace_reader *r, const char *name)
{
	struct ky_key_part *p = &k->parts[k->n_parts];

	if (!*name || k->n_parts == KY_KEYS_MAX)
		return -EINVAL;
	k->n_parts++;
	p->kind = !strcmp(name, "name")	    ? KY_KEY_NAME
		  : !strcmp(name, "stream") ? KY_KEY_STREAM
					    : KY_KEY_FIELD;
	return p->kind == KY_KEY_FIELD ? find_part_fields(k, p, r, name) : 0;
}

int ky_keys_init(
	struct ky_keys *k, const struct ky_trace_reader *r, const char *names, char separator)
{
	const char separators[] = {separator, '\0'};
	char *copy = strdup(names), *rest = copy, *name;
	int e = copy ? 0 : -ENOMEM;

	*k = (struct ky_keys){0};
	while (!e && (name = strsep(&rest, separators)))
		e = add_part(k, r, name);
	free(copy);
	return e;
}

void ky_keys_deinit(struct ky_keys *k)
{
	for (size_t i = 0; i < k->n_parts; i++)
		free(k->parts[i].of_class);
	ky_buf_deinit(&k->key);
	free(k->unknown);
	*k = (struct ky_keys){0};
}

static void add_real(struct ky_buf *key, double v, bool is_single)
{
	char text[KY_REAL_TEXT];

	ky_buf_append(key, text, ky_format_real(text, v == 0 ? 0 : v, is_single));
}

static bool add_value(struct ky_buf *key, struct ky_key_part *p, const struct ky_item *item)
{
	struct ky_field_value value;
	const struct ky_node *n;

	if (!ky_field_get(&p->of_class[item->event->index], item, &value)) {
		ky_buf_append(key, "-", 1);
		return false;
	}
	n = value.v->node;
	if (n->kind == KY_NODE_FLOAT)
		add_real(key, value.v->f, n->size == 32 && !p->is_mixed);
	else if (n->kind == KY_NODE_INT && p->is_mixed)
		ky_buf_printf(key, n->is_signed ? "%" PRId64 : "%" PRIu64, value.v->u);
	else
		ky_format_value(key, value.v, value.data);
	return true;
}

bool ky_keys_make(struct ky_keys *k, const struct ky_item *item)
{
	bool is_whole = true;

	k->key.len = 0;
	k->key.max = KY_KEY_TEXT_MAX;
	for (size_t i = 0; i < k->n_parts; i++) {
		struct ky_key_part *p = &k->parts[i];

		if (i)
			ky_buf_append(&k->key, "  ", 2);
		if (p->kind == KY_KEY_NAME)
			ky_buf_puts(&k->key, item->event->name);
		else if (p->kind == KY_KEY_STREAM)
			ky_buf_puts(&k->key, item->file->path);
		else
			is_whole &= add_value(&k->key, p, item);
	}
	k->is_too_long = k->key.error == -EMSGSIZE;
	if (k->is_too_long)
		k->key.error = 0;
	return is_whole && !k->is_too_long;
}
