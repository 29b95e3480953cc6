/* SPDX-License-Identifier: MIT */
#include "report/flows.h"

#include "report/column.h"

/* A flow: its number in the page. */
struct flow {
	struct ky_hnode node;
	uint32_t stem, number;
	uint64_t id;
};

/* Finds or makes the flow of a step. NULL: no memory. */
static const struct flow *get_flow(struct ky_flows *flows, uint32_t stem, uint64_t id)
{
	const uint64_t key[] = {stem, id};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct flow *f;

	for (struct ky_hnode *n = ky_htab_first(&flows->table, hash); n; n = ky_htab_next(n)) {
		f = ky_container_of(n, struct flow, node);
		if (f->stem == stem && f->id == id)
			return f;
	}
	f = malloc(sizeof(*f));
	if (!f || ky_htab_add(&flows->table, &f->node, hash) < 0) {
		free(f);
		return NULL;
	}
	f->stem = stem;
	f->id = id;
	f->number = flows->n++;
	return f;
}

int ky_flows_add(struct ky_flows *f, const struct ky_flow_step *step)
{
	const struct flow *flow = get_flow(f, step->stem, step->id);

	if (!flow)
		return -ENOMEM;
	ky_column_put(&f->gaps, (uint64_t)(step->ns - f->last_ns));
	ky_column_put(&f->names, step->name);
	ky_column_put(&f->numbers, flow->number);
	ky_column_put(&f->tracks, step->track);
	f->last_ns = step->ns;
	f->n_steps++;
	return 0;
}

void ky_flows_put(const struct ky_flows *f, struct ky_buf *part)
{
	const struct ky_buf *const columns[] = {&f->gaps, &f->names, &f->numbers, &f->tracks};

	ky_columns_join(part, columns, KY_ARRAY_SIZE(columns));
}

void ky_flows_deinit(struct ky_flows *f)
{
	struct ky_buf *const columns[] = {&f->gaps, &f->names, &f->numbers, &f->tracks};

	for (size_t i = 0; i < KY_ARRAY_SIZE(columns); i++)
		ky_buf_deinit(columns[i]);
	ky_htab_free_all(&f->table, struct flow, node);
}
