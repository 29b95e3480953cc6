/* SPDX-License-Identifier: MIT */
#include "analysis/tally.h"

#include "analysis/keys.h"

struct grouping {
	struct ky_tally *groups;
	struct ky_keys keys;
};

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
	if (g->table.n == KY_TALLY_MAX || g->n_text + key->len > KY_TALLY_TEXT_MAX) {
		g->n_others++;
		return 0;
	}
	group = calloc(1, sizeof(*group) + key->len + 1);
	if (!group || ky_htab_add(&g->table, &group->node, hash) < 0) {
		free(group);
		return -ENOMEM;
	}
	g->n_text += key->len;
	group->n = 1;
	group->len = key->len;
	memcpy(group->key, key->data, key->len);
	return 0;
}

static int count_item(struct grouping *g, const struct ky_item *item)
{
	ky_keys_make(&g->keys, item);
	if (g->keys.key.error)
		return -ENOMEM;
	if (!g->keys.is_too_long)
		return count_key(g->groups, &g->keys.key);
	g->groups->n_events++;
	g->groups->n_others++;
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
		if (item.kind == KY_ITEM_EVENT)
			r = count_item(g, &item);
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
	int r = ky_keys_init(&g.keys, q->reader, by, ',');

	*to = (struct ky_tally){.unknown = g.keys.unknown};
	g.keys.unknown = NULL;
	if (!r)
		r = ky_reading_init(&reading, q, NULL, NULL, options);
	if (!r)
		r = count_all(&g, reading.cursor);
	ky_reading_deinit(&reading);
	ky_keys_deinit(&g.keys);
	return r ? r : sort_groups(to);
}

void ky_tally_deinit(struct ky_tally *g)
{
	ky_htab_free_all(&g->table, struct ky_tally_key, node);
	free(g->by_n);
	free(g->unknown);
	*g = (struct ky_tally){0};
}
