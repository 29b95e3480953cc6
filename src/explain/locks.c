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

static void close_hold(struct ky_mutex *m, size_t i)
{
	m->open.v[i] = m->open.v[--m->open.n];
}

int ky_mutex_acquire(struct ky_mutex *m, const struct ky_hold *hold)
{
	for (size_t i = 0; i < m->open.n; i++) {
		if (m->open.v[i].thread == hold->thread) {
			m->open.v[i].depth++;
			return 0;
		}
	}
	return ky_vec_add(&m->open, *hold);
}

int ky_mutex_release(struct ky_mutex *m, uint32_t thread, int64_t ns)
{
	for (size_t i = 0; i < m->open.n; i++) {
		struct ky_hold hold = m->open.v[i];

		if (hold.thread != thread)
			continue;
		if (hold.depth) {
			m->open.v[i].depth--;
			return 0;
		}
		close_hold(m, i);
		if (!m->is_contended)
			return 0;
		ky_vec_drop_oldest(&m->closed, KY_MAX_HOLDS);
		hold.to = ns;
		return ky_vec_add(&m->closed, hold);
	}
	return 0;
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
