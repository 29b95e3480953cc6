/* SPDX-License-Identifier: MIT */
#include "explain/locks.h"

struct ky_mutex *ky_locks_get(struct ky_locks *l, uint64_t process, uint64_t address)
{
	const uint64_t key[] = {process, address};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct ky_mutex *m;

	for (struct ky_hnode *n = ky_htab_first(&l->table, hash); n; n = ky_htab_next(n)) {
		m = ky_container_of(n, struct ky_mutex, node);
		if (m->process == process && m->address == address)
			return m;
	}
	m = calloc(1, sizeof(*m));
	if (!m || ky_htab_add(&l->table, &m->node, hash) < 0) {
		free(m);
		return NULL;
	}
	m->process = process;
	m->address = address;
	return m;
}

static struct ky_hold *find_hold(struct ky_mutex *m, uint32_t thread)
{
	for (size_t i = 0; i < m->open.n; i++) {
		if (m->open.v[i].thread == thread)
			return &m->open.v[i];
	}
	return NULL;
}

int ky_mutex_acquire(struct ky_mutex *m, const struct ky_hold *hold)
{
	struct ky_hold *h = find_hold(m, hold->thread);

	if (!h)
		return ky_vec_add(&m->open, *hold);
	if (h->is_lent)
		ky_mutex_take_back(m, hold->thread, hold->from);
	else
		h->depth++;
	return 0;
}

static int add_closed(struct ky_mutex *m, struct ky_hold hold, int64_t ns)
{
	if (!m->is_contended || hold.is_lent)
		return 0;
	ky_vec_drop_oldest(&m->closed, KY_MAX_HOLDS);
	hold.to = ns;
	return ky_vec_add(&m->closed, hold);
}

int ky_mutex_release(struct ky_mutex *m, uint32_t thread, int64_t ns)
{
	struct ky_hold *h = find_hold(m, thread), hold;

	if (!h)
		return 0;
	if (h->depth) {
		h->depth--;
		return 0;
	}
	hold = *h;
	*h = m->open.v[--m->open.n];
	return add_closed(m, hold, ns);
}

int ky_mutex_lend(struct ky_mutex *m, uint32_t thread, int64_t ns)
{
	struct ky_hold *h = find_hold(m, thread);
	int r = h ? add_closed(m, *h, ns) : 0;

	if (h)
		h->is_lent = true;
	return r;
}

void ky_mutex_take_back(struct ky_mutex *m, uint32_t thread, int64_t ns)
{
	struct ky_hold *h = find_hold(m, thread);

	if (h && h->is_lent) {
		h->is_lent = false;
		h->from = ns;
	}
}

void ky_locks_forget(struct ky_locks *l)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&l->table, i, n, tmp)
	{
		ky_container_of(n, struct ky_mutex, node)->open.n = 0;
	}
}

void ky_locks_deinit(struct ky_locks *l)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&l->table, i, n, tmp)
	{
		struct ky_mutex *m = ky_container_of(n, struct ky_mutex, node);

		ky_vec_deinit(&m->open);
		ky_vec_deinit(&m->closed);
		free(m);
	}
	ky_htab_deinit(&l->table);
}
