/* SPDX-License-Identifier: MIT */
#include "consumerd/chunk.h"

#include "consumerd/bounds.h"
#include "consumerd/round.h"
#include "consumerd/stream/stream-set.h"
#include "consumerd/watermark.h"
#include "svc/log.h"

static bool has_packets(const struct consumerd *c)
{
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (stream_set_has_packets(set))
			return true;
	return false;
}

/* Writes all records until now, and no later ones, into the present chunk. Returns 0 or -errno. */
static int complete_chunk(struct consumerd *c)
{
	round_flush(c);
	if (!c->sink->ops->keeps)
		return -EBADMSG;
	if (c->status)
		return c->status;
	return has_packets(c) || c->session->retired_in == c->session->chunk + 1 ? 0 : -ENODATA;
}

/*
 * Returns 0, or -errno if a stream could not be opened. A file that the successor of a dead
 * consumer has not opened yet must stay: it says how far its ring was read.
 */
static int look_at_all(struct consumerd *c)
{
	struct stream_set *set;

	round_look(c);
	ky_list_foreach (set, &c->sets, node)
		if (set->unopened)
			return set->unopened;
	return 0;
}

/* Moves the chunk to its archive: the point of no return. */
static int move_chunk(struct consumerd *c, const char *archive)
{
	int ret = c->sink->ops->archive(c->sink, archive);

	return !*archive && ret == -ENOENT ? 0 : ret;
}

static void enter_chunk(struct consumerd *c, uint64_t chunk)
{
	struct stream_set *set;
	struct trace *t;

	__atomic_store_n(&c->session->chunk, chunk, __ATOMIC_RELEASE);
	__atomic_store_n(&c->session->prepared, 0, __ATOMIC_RELEASE);
	ky_list_foreach (t, &c->traces, node)
		trace_enter(t, chunk);
	ky_list_foreach (set, &c->sets, node)
		stream_set_enter(set);
}

static void discard_chunk(struct consumerd *c)
{
	int ret = c->sink->ops->discard(c->sink);

	if (ret < 0)
		ky_error(
			"%s: cannot remove all of what was cleared: %s", c->output, strerror(-ret));
}

int chunk_rotate(struct consumerd *c, const char *archive)
{
	uint64_t next = c->session->chunk + 1;
	struct stream_set *set;
	int ret = *archive ? complete_chunk(c) : look_at_all(c);

	if (ret < 0)
		return ret;
	ky_list_foreach (set, &c->sets, node)
		stream_set_prepare(set, next, !*archive);
	__atomic_store_n(&c->session->prepared, next, __ATOMIC_RELEASE);
	ret = move_chunk(c, archive);
	if (ret < 0) {
		__atomic_store_n(&c->session->prepared, 0, __ATOMIC_RELEASE);
		return ret;
	}
	enter_chunk(c, next);
	discard_chunk(c);
	watermark_update(c);
	bounds_enforce(c, 0);
	return 0;
}

void chunk_resume(struct consumerd *c)
{
	struct ky_resume_session *s = c->session;

	if (s->prepared == s->chunk + 1 && !c->sink->ops->has_chunk(c->sink))
		s->chunk = s->prepared;
	s->prepared = 0;
	discard_chunk(c);
}
