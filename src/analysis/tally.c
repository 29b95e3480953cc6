/* SPDX-License-Identifier: MIT */
#include "analysis/tally.h"

#include "base/buf.h"
#include "reader/format.h"

#define MAX_NAMES  8
#define MAX_FIELDS 3 /* that one name may stand for */

/* Fields that a name stands for: the first one that an event has. */
static const struct {
	const char *name;
	const char *fields[MAX_FIELDS + 1];
} aliases[] = {
	{"process", {"vpid", "pid"}},
	{"thread", {"vtid", "tid", "span_tid"}},
	{"cpu", {"cpu_id"}},
};

struct part {
	enum { PART_NAME, PART_STREAM, PART_FIELD } kind;
	struct ky_field_ref *of_class; /* owned; by the index of the class */
};

struct grouping {
	struct ky_tally *groups;
	struct part parts[MAX_NAMES];
	size_t n_parts;
	struct ky_buf key;
};

static bool is_alias(const char *name)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(aliases); i++)
		if (!strcmp(aliases[i].name, name))
			return true;
	return false;
}

static bool find_part_field(
	struct ky_field_ref *ret, const struct ky_event_class *e, const char *name)
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

/* In a trace without classes, all names are accepted. */
static int find_part_fields(
	struct grouping *g, struct part *p, const struct ky_trace_reader *r, const char *name)
{
	bool known = is_alias(name) || !r->n_classes;

	p->of_class = calloc(r->n_classes + 1, sizeof(*p->of_class));
	for (size_t i = 0; p->of_class && i < r->n_classes; i++)
		known |= find_part_field(&p->of_class[i], r->classes[i], name);
	if (p->of_class && known)
		return 0;
	g->groups->unknown = p->of_class ? strdup(name) : NULL;
	return g->groups->unknown ? -ENOENT : -ENOMEM;
}

static int add_part(struct grouping *g, const struct ky_trace_reader *r, const char *name)
{
	struct part *p = &g->parts[g->n_parts];

	if (!*name || g->n_parts == MAX_NAMES)
		return -EINVAL;
	g->n_parts++;
	p->kind = !strcmp(name, "name")	    ? PART_NAME
		  : !strcmp(name, "stream") ? PART_STREAM
					    : PART_FIELD;
	return p->kind == PART_FIELD ? find_part_fields(g, p, r, name) : 0;
}

static int parse_parts(struct grouping *g, const struct ky_trace_reader *r, const char *by)
{
	char *copy = strdup(by), *rest = copy, *name;
	int e = copy ? 0 : -ENOMEM;

	while (!e && (name = strsep(&rest, ",")))
		e = add_part(g, r, name);
	free(copy);
	return e;
}

static void add_value(struct ky_buf *key, struct ky_field_ref *f, const struct ky_item *item)
{
	struct ky_field_value value;

	if (!ky_field_get(f, item, &value))
		ky_buf_append(key, "-", 1);
	else
		ky_format_value(key, value.v, value.data);
}

static void make_key(struct grouping *g, const struct ky_item *item)
{
	g->key.len = 0;
	for (size_t i = 0; i < g->n_parts; i++) {
		const struct part *p = &g->parts[i];

		if (i)
			ky_buf_append(&g->key, "  ", 2);
		if (p->kind == PART_NAME)
			ky_buf_puts(&g->key, item->event->name ? item->event->name : "<unknown>");
		else if (p->kind == PART_STREAM)
			ky_buf_puts(&g->key, item->file->path);
		else
			add_value(&g->key, &p->of_class[item->event->index], item);
	}
}

static int count_key(struct ky_tally *g, const struct ky_buf *key)
{
	uint32_t hash = ky_hash(key->data, key->len);
	struct ky_tally_key *group;

	g->n_events++;
	for (struct ky_hnode *n = ky_htab_first(&g->table, hash); n; n = ky_htab_next(n)) {
		group = ky_container_of(n, struct ky_tally_key, node);
		if (group->len == key->len && !memcmp(group->key, key->data, key->len)) {
			group->n++;
			return 0;
		}
	}
	if (g->table.n == KY_TALLY_MAX) {
		g->n_others++;
		return 0;
	}
	group = calloc(1, sizeof(*group) + key->len + 1);
	if (!group || ky_htab_add(&g->table, &group->node, hash) < 0) {
		free(group);
		return -ENOMEM;
	}
	group->n = 1;
	group->len = key->len;
	memcpy(group->key, key->data, key->len);
	return 0;
}

static int by_frequency(const void *a, const void *b)
{
	const struct ky_tally_key *x = *(struct ky_tally_key *const *)a;
	const struct ky_tally_key *y = *(struct ky_tally_key *const *)b;

	return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->key, y->key);
}

static int sort_groups(struct ky_tally *g)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	g->by_n = calloc(g->table.n + 1, sizeof(struct ky_tally_key *));
	if (!g->by_n)
		return -ENOMEM;
	ky_htab_foreach(&g->table, i, n, tmp)
	{
		g->by_n[g->n++] = ky_container_of(n, struct ky_tally_key, node);
	}
	qsort(g->by_n, g->n, sizeof(struct ky_tally_key *), by_frequency);
	return 0;
}

static int count_all(struct grouping *g, struct ky_cursor *cursor)
{
	struct ky_values values = {0};
	struct ky_item item;
	int r;

	while ((r = ky_cursor_next(cursor, &item, &values)) > 0) {
		if (item.kind == KY_ITEM_EVENT) {
			make_key(g, &item);
			r = g->key.error ? -ENOMEM : count_key(g->groups, &g->key);
		}
		values.n = 0;
		if (r < 0)
			break;
	}
	free(values.v);
	return r;
}

int ky_tally_collect(struct ky_tally *to, const struct ky_query *q, const char *by,
	const struct ky_trace_reader_options *options)
{
	struct grouping g = {.groups = to};
	struct ky_reading reading = {0};
	int r;

	*to = (struct ky_tally){0};
	r = parse_parts(&g, q->reader, by);
	if (!r)
		r = ky_reading_init(&reading, q, NULL, NULL, options);
	if (!r)
		r = count_all(&g, reading.cursor);
	ky_reading_deinit(&reading);
	for (size_t i = 0; i < g.n_parts; i++)
		free(g.parts[i].of_class);
	ky_buf_deinit(&g.key);
	return r ? r : sort_groups(to);
}

void ky_tally_deinit(struct ky_tally *g)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&g->table, i, n, tmp)
	{
		free(ky_container_of(n, struct ky_tally_key, node));
	}
	ky_htab_deinit(&g->table);
	free(g->by_n);
	free(g->unknown);
	*g = (struct ky_tally){0};
}
