/* SPDX-License-Identifier: MIT */
#include "explain/locks.h"

#define LATE_NS	    500000 /* a release may be recorded so long after the next acquisition */
#define PAGE_PLACES 4096u
#define N_AGREE	    3
#define MUTEXES_MAX 256 /* of one place in a page: so many are considered as other mappings */

static uint32_t place_hash(uint64_t address)
{
	uint64_t place = address % PAGE_PLACES;

	return ky_hash(&place, sizeof(place));
}

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
	if (ky_htab_add(&l->by_place, &m->same_place, place_hash(address)) < 0) {
		ky_htab_remove(&l->table, &m->node);
		free(m);
		return NULL;
	}
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

static void note_end(struct ky_mutex *m, const struct ky_hold *h, int64_t ns)
{
	m->last.thread = h->thread;
	m->last.from = h->from;
	m->last.to = ns;
}

int64_t ky_mutex_end_of_hold(const struct ky_mutex *m, uint32_t thread, int64_t from, int64_t ns)
{
	bool is_last = m->last.thread == thread && m->last.from == from;

	return is_last ? KY_MIN(m->last.to, ns) : ns;
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
	note_end(m, h, ns);
	if (!m->held_to) {
		m->held_from = hold.from;
		m->held_to = ns;
	}
	*h = m->open.v[--m->open.n];
	return add_closed(m, hold, ns);
}

int ky_mutex_lend(struct ky_mutex *m, uint32_t thread, int64_t ns)
{
	struct ky_hold *h = find_hold(m, thread);
	int r = h ? add_closed(m, *h, ns) : 0;

	if (h) {
		note_end(m, h, ns);
		h->is_lent = true;
	}
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

/* --- mutexes that processes share --- */

bool ky_mutex_was_held(const struct ky_mutex *m, uint32_t waiter, int64_t from, int64_t to)
{
	for (size_t i = 0; i < m->open.n; i++) {
		if (m->open.v[i].thread != waiter && !m->open.v[i].is_lent)
			return true;
	}
	for (size_t i = m->closed.n; i-- > 0 && m->closed.v[i].to > from;) {
		if (m->closed.v[i].thread != waiter && m->closed.v[i].from < to)
			return true;
	}
	return false;
}

/* Whether the two were held at the same time: then they are two. */
static bool overlaps(const struct ky_mutex *m, const struct ky_mutex *c)
{
	const int64_t late = m->held_to + LATE_NS;

	for (size_t i = 0; i < c->open.n; i++) {
		if (c->open.v[i].from < m->held_from)
			return true;
	}
	for (size_t i = c->closed.n; i-- > 0 && c->closed.v[i].to > late;) {
		if (c->closed.v[i].from < m->held_from)
			return true;
	}
	return false;
}

/* Whether it was held for most of the wait, to its end. */
static bool is_held_during(const struct ky_mutex *c, int64_t from, int64_t to)
{
	int64_t held = 0, end = INT64_MIN;

	for (size_t i = 0; i < c->open.n; i++) {
		if (c->open.v[i].is_lent)
			continue;
		held += to - KY_MAX(from, c->open.v[i].from);
		end = to;
	}
	for (size_t i = c->closed.n; i-- > 0 && c->closed.v[i].to > from;) {
		held += c->closed.v[i].to - KY_MAX(from, c->closed.v[i].from);
		end = KY_MAX(end, c->closed.v[i].to);
	}
	return held >= (to - from) / 5 * 4 && end >= to - LATE_NS;
}

void ky_locks_expect(struct ky_locks *l, struct ky_mutex *m, int64_t ns)
{
	unsigned n_left = MUTEXES_MAX;

	if (m->held_to && ns > m->held_to + LATE_NS) {
		m->n_differ += m->alias && overlaps(m, m->alias);
		m->held_to = 0;
	}
	if (m->open.n) {
		m->is_contended = true;
		return;
	}
	for (struct ky_hnode *n = ky_htab_first(&l->by_place, place_hash(m->address));
		n && n_left--; n = ky_htab_next(n)) {
		struct ky_mutex *c = ky_container_of(n, struct ky_mutex, same_place);

		if (c->process != m->process && c->open.n)
			c->is_contended = true;
	}
}

static struct ky_mutex *first_alias(
	const struct ky_locks *l, const struct ky_mutex *m, int64_t from, int64_t to)
{
	unsigned n_left = MUTEXES_MAX;

	for (struct ky_hnode *n = ky_htab_first(&l->by_place, place_hash(m->address));
		n && n_left--; n = ky_htab_next(n)) {
		struct ky_mutex *c = ky_container_of(n, struct ky_mutex, same_place);

		if (c->process != m->process && is_held_during(c, from, to))
			return c;
	}
	return NULL;
}

const struct ky_mutex *ky_locks_find_alias(
	struct ky_locks *l, struct ky_mutex *m, int64_t from, int64_t to)
{
	if (m->alias && !is_held_during(m->alias, from, to))
		m->n_differ++;
	else if (m->alias || (m->alias = first_alias(l, m, from, to)))
		m->n_agree++;
	if (m->n_differ > m->n_agree) {
		m->alias = NULL;
		m->n_agree = m->n_differ = 0;
	}
	return m->n_agree >= N_AGREE && m->n_agree > 3 * m->n_differ ? m->alias : NULL;
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
	ky_htab_deinit(&l->by_place);
}
