/* SPDX-License-Identifier: MIT */
#include "report/losses.h"

#include "base/bisect.h"

#define MAX_SHOWN 10000

/* Finds or makes the losses of a group or a stream. NULL: no memory. */
static struct ky_gap *get_gap(struct ky_gaps *g, size_t number)
{
	while (g->n <= number) {
		if (ky_vec_add(g, (struct ky_gap){0}) < 0)
			return NULL;
	}
	return &g->v[number];
}

static void deinit_gaps(struct ky_gaps *g)
{
	for (size_t i = 0; i < g->n; i++)
		ky_vec_deinit(&g->v[i].losses);
	ky_vec_deinit(g);
}

/* Returns the number of the first loss of a group or a stream from a number on; or SIZE_MAX. */
static size_t first_loss(const struct ky_gaps *g, size_t number, size_t from)
{
	const struct ky_gap *gap = number < g->n ? &g->v[number] : NULL;
	size_t i;

	ky_bisect(i, gap ? gap->losses.n : 0, k, gap->losses.v[k] < from);
	return gap && i < gap->losses.n ? gap->losses.v[i] : SIZE_MAX;
}

void ky_track_losses_apply(struct ky_track_losses *l, struct ky_tracks *tracks, struct ky_track *k)
{
	size_t from = k ? k->n_losses : l->cuts.n, first = SIZE_MAX, of_state = SIZE_MAX;

	if (from == l->cuts.n)
		return;
	if (k->kind == KY_TRACK_ASYNC)
		first = from;
	else if (k->kind == KY_TRACK_THREAD || k->kind == KY_TRACK_CPU)
		first = KY_MIN(first_loss(&l->of_groups, k->group, from),
			first_loss(&l->of_streams, k->stream, from));
	if (k->state)
		of_state = first_loss(&l->of_groups, k->state_group, from);
	if (first != SIZE_MAX)
		ky_track_cut(tracks, k, l->cuts.v[first]);
	if (of_state != SIZE_MAX)
		ky_track_set_state(tracks, k, 0, KY_MAX(l->cuts.v[of_state], k->state_ns));
	k->n_losses = l->cuts.n;
}

int ky_track_losses_use(
	struct ky_track_losses *l, struct ky_track *k, const struct ky_source_event *e)
{
	const struct ky_gap *of_group = get_gap(&l->of_groups, e->group);
	struct ky_gap *of_stream = get_gap(&l->of_streams, e->stream);

	if (!of_group || !of_stream)
		return -ENOMEM;
	of_stream->track = k->number + 1;
	k->stream = e->stream;
	k->group = e->group;
	k->gap_ns = KY_MAX(k->gap_ns, KY_MAX(of_group->until_ns, of_stream->until_ns));
	return 0;
}

/* Adds a loss to those that the page shows; beyond MAX_SHOWN, it extends the last one. */
static int show_loss(struct ky_track_losses *l, struct ky_shown_loss loss)
{
	struct ky_shown_loss *last = l->shown.n ? &l->shown.v[l->shown.n - 1] : NULL;

	if (l->shown.n < MAX_SHOWN)
		return ky_vec_add(&l->shown, loss);
	last->from_ns = KY_MIN(last->from_ns, loss.from_ns);
	last->to_ns = KY_MAX(last->to_ns, loss.to_ns);
	last->n += loss.n;
	last->track = -1;
	return 0;
}

int ky_track_losses_add(struct ky_track_losses *l, const struct ky_source_event *e, int64_t from_ns,
	int64_t to_ns, bool is_shown)
{
	struct ky_gap *gap = e->is_of_thread ? get_gap(&l->of_streams, e->stream)
					     : get_gap(&l->of_groups, e->group);

	if (!gap || ky_vec_add(&gap->losses, l->cuts.n) < 0 || ky_vec_add(&l->cuts, from_ns) < 0)
		return -ENOMEM;
	gap->until_ns = KY_MAX(gap->until_ns, to_ns);
	l->n_of_groups += !e->is_of_thread;
	l->until_ns = KY_MAX(l->until_ns, to_ns);
	if (!is_shown)
		return 0;
	return show_loss(l, (struct ky_shown_loss){from_ns, to_ns, e->item ? e->item->lost.n : 0,
				    (int64_t)gap->track - 1});
}

void ky_track_losses_deinit(struct ky_track_losses *l)
{
	ky_vec_deinit(&l->shown);
	deinit_gaps(&l->of_groups);
	deinit_gaps(&l->of_streams);
	ky_vec_deinit(&l->cuts);
}
