/* SPDX-License-Identifier: MIT */
#include "report/tracks.h"

#include "report/column.h"

/* --- rows --- */

static void deinit_row(struct ky_row *r)
{
	ky_buf_deinit(&r->gaps);
	ky_buf_deinit(&r->durations);
	ky_buf_deinit(&r->names);
}

/* Moves the last slice into the columns. */
static void flush_row(struct ky_row *r)
{
	if (!r->has_last)
		return;
	ky_column_put(&r->gaps, (uint64_t)(r->last_begin_ns - r->end_ns));
	ky_column_put(&r->durations, (uint64_t)(r->last_end_ns - r->last_begin_ns));
	ky_column_put(&r->names, r->last_name);
	r->end_ns = r->last_end_ns;
	r->has_last = false;
	r->n++;
}

/* Returns true if the new slice and the last one are drawn as one. */
static bool joins_last(const struct ky_row *r, int64_t begin_ns, int64_t end_ns, int64_t coarse_ns)
{
	return coarse_ns && r->has_last && end_ns - begin_ns < coarse_ns &&
	       end_ns - r->last_begin_ns <= coarse_ns;
}

static void add_slice(
	struct ky_tracks *t, struct ky_row *r, uint32_t name, int64_t begin_ns, int64_t end_ns)
{
	/* Clocks may fall, and then slices would overlap. */
	begin_ns = KY_MAX(begin_ns, r->has_last ? r->last_end_ns : r->end_ns);
	end_ns = KY_MAX(end_ns, begin_ns);
	if (joins_last(r, begin_ns, end_ns, t->coarse_ns)) {
		r->last_end_ns = end_ns;
		r->last_name = (r->last_name & ~3u) | KY_SLICE_MANY;
		return;
	}
	flush_row(r);
	r->has_last = true;
	r->last_begin_ns = begin_ns;
	r->last_end_ns = end_ns;
	r->last_name = name;
	t->n_slices++;
}

static void put_row(const struct ky_row *r, struct ky_buf *part)
{
	const struct ky_buf *const columns[] = {&r->gaps, &r->durations, &r->names};

	ky_column_put(part, r->n);
	ky_columns_join(part, columns, KY_ARRAY_SIZE(columns));
}

/* --- tracks --- */

static void free_track(struct ky_track *k)
{
	for (size_t i = 0; i < k->rows.n; i++)
		deinit_row(&k->rows.v[i]);
	deinit_row(&k->states);
	ky_vec_deinit(&k->rows);
	ky_vec_deinit(&k->open);
	ky_buf_deinit(&k->times);
	ky_buf_deinit(&k->values);
	free(k->bins);
	free(k);
}

void ky_tracks_deinit(struct ky_tracks *t)
{
	for (size_t i = 0; i < t->all.n; i++)
		free_track(t->all.v[i]);
	ky_vec_deinit(&t->all);
	ky_htab_deinit(&t->table);
}

static uint32_t hash_of(enum ky_track_kind kind, uint32_t host, int64_t id)
{
	const int64_t key[] = {kind, host, id};

	return ky_hash(key, sizeof(key));
}

static bool is_same_process(const struct ky_track *k, enum ky_track_kind kind, int64_t pid)
{
	return k->pid == pid || (kind == KY_TRACK_THREAD && (k->pid < 0 || pid < 0));
}

struct ky_track *ky_tracks_get(
	struct ky_tracks *t, enum ky_track_kind kind, uint32_t host, int64_t pid, int64_t id)
{
	struct ky_track *k = t->last;
	uint32_t hash;

	if (k && k->kind == kind && k->host == host && k->id == id && k->pid == pid)
		return k;
	hash = hash_of(kind, host, id);
	for (struct ky_hnode *n = ky_htab_first(&t->table, hash); n; n = ky_htab_next(n)) {
		k = ky_container_of(n, struct ky_track, node);
		if (k->kind != kind || k->host != host || k->id != id ||
			!is_same_process(k, kind, pid))
			continue;
		k->pid = k->pid < 0 ? pid : k->pid;
		return t->last = k;
	}
	k = calloc(1, sizeof(*k));
	if (!k || ky_vec_add(&t->all, k) < 0 || ky_htab_add(&t->table, &k->node, hash) < 0) {
		if (t->all.n && t->all.v[t->all.n - 1] == k)
			t->all.n--;
		free(k);
		t->error = -ENOMEM;
		return NULL;
	}
	k->kind = kind;
	k->number = (uint32_t)t->all.n - 1;
	k->host = host;
	k->pid = pid;
	k->id = id;
	return t->last = k;
}

/* --- slices --- */

/* Returns the row at this depth; NULL: no memory. */
static struct ky_row *get_row(struct ky_tracks *t, struct ky_track *k, size_t depth)
{
	while (k->rows.n <= depth) {
		if (ky_vec_add(&k->rows, (struct ky_row){0}) < 0) {
			t->error = -ENOMEM;
			return NULL;
		}
	}
	return &k->rows.v[depth];
}

static size_t open_at(
	struct ky_tracks *t, struct ky_track *k, size_t depth, uint32_t name, int64_t ns)
{
	if (depth >= KY_TRACK_MAX_ROWS) {
		t->n_too_deep++;
		return KY_TRACK_MAX_ROWS;
	}
	if (depth == k->open.n && ky_vec_add(&k->open, (struct ky_open_slice){0}) < 0) {
		t->error = -ENOMEM;
		return KY_TRACK_MAX_ROWS;
	}
	k->open.v[depth] = (struct ky_open_slice){.name = name, .begin_ns = ns};
	return depth;
}

size_t ky_track_open(struct ky_tracks *t, struct ky_track *k, uint32_t name, int64_t ns)
{
	return open_at(t, k, k->open.n, name, ns);
}

size_t ky_track_open_lane(struct ky_tracks *t, struct ky_track *k, uint32_t name, int64_t ns)
{
	size_t depth = 0;

	while (depth < k->open.n && k->open.v[depth].name)
		depth++;
	return open_at(t, k, depth, name, ns);
}

void ky_track_end_at(
	struct ky_tracks *t, struct ky_track *k, size_t depth, int64_t ns, unsigned flags)
{
	struct ky_open_slice *o = depth < k->open.n ? &k->open.v[depth] : NULL;
	struct ky_row *r = o && o->name ? get_row(t, k, depth) : NULL;

	if (!r)
		return;
	if (o->begin_ns < k->gap_ns)
		flags |= KY_SLICE_CUT;
	add_slice(t, r, o->name * 4 | flags, o->begin_ns, ns);
	o->name = 0;
	while (k->open.n && !k->open.v[k->open.n - 1].name)
		k->open.n--;
}

void ky_track_end(struct ky_tracks *t, struct ky_track *k, uint32_t name, int64_t ns)
{
	for (size_t i = k->open.n; i-- > 0;) {
		if (k->open.v[i].name && (!name || k->open.v[i].name == name)) {
			ky_track_end_at(t, k, i, ns, 0);
			return;
		}
	}
}

void ky_track_cut(struct ky_tracks *t, struct ky_track *k, int64_t from_ns)
{
	for (size_t i = k->open.n; i-- > 0;)
		ky_track_end_at(t, k, i, from_ns, KY_SLICE_CUT);
}

void ky_track_set_state(struct ky_tracks *t, struct ky_track *k, uint32_t state, int64_t ns)
{
	if (k->state)
		add_slice(t, &k->states, k->state * 4, k->state_ns, ns);
	k->state = state;
	k->state_ns = ns;
}

void ky_tracks_finish(struct ky_tracks *t)
{
	for (size_t i = 0; i < t->all.n; i++) {
		struct ky_track *k = t->all.v[i];

		ky_track_cut(t, k, k->last_ns);
		if (k->state)
			ky_track_set_state(t, k, 0, k->last_ns);
		for (size_t d = 0; d < k->rows.n; d++)
			flush_row(&k->rows.v[d]);
		flush_row(&k->states);
	}
}

void ky_track_put(const struct ky_track *k, struct ky_buf *part)
{
	ky_column_put(part, k->rows.n + (k->states.n > 0));
	if (k->states.n)
		put_row(&k->states, part);
	for (size_t i = 0; i < k->rows.n; i++)
		put_row(&k->rows.v[i], part);
}
