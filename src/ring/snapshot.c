/* SPDX-License-Identifier: MIT */
#include "ring/snapshot.h"

/*
 * A writer laps the smallest ring in some microseconds, and a copy of it takes less: enough tries.
 */
#define TRIES 100

/* The part of a ring that was present when it was examined. */
struct extent {
	uint64_t oldest, head; /* positions */
	uint64_t word;	       /* the head as the ring holds it */
	uint64_t last_ts;      /* not less than the clock of any record before the head */
};

/*
 * Copies words. Writers may be writing there: then the copy is useless, which the caller finds out
 * afterwards.
 */
static __attribute__((no_sanitize("thread"))) void copy_words(
	void *to, const void *from, uint64_t n_bytes)
{
	const uint64_t *source = from;
	uint64_t *target = to;

	for (uint64_t i = 0; i < n_bytes / sizeof(uint64_t); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

/*
 * Reads the extent of a ring. Returns false if it is invalid: permanently, or because a writer was
 * fast between the two loads.
 */
static bool read_extent(
	const struct ky_geometry *g, const struct ky_ring_ctl *ctl, struct extent *e)
{
	/* Acquire: the head is not older. */
	e->oldest = __atomic_load_n(&ctl->oldest, __ATOMIC_ACQUIRE);
	/* Acquire: pairs with the writers' publishing store. */
	e->word = __atomic_load_n(&ctl->head, __ATOMIC_ACQUIRE);
	e->last_ts = ky_ring_load(&ctl->last_ts);
	e->head = ky_head_pos(e->word, e->oldest);
	return e->oldest <= UINT64_MAX / 2 && e->oldest % g->block_size == 0 &&
	       e->head % g->block_size <= KY_BLOCK_LIMIT(g->block_size) &&
	       e->head - e->oldest < ky_geometry_reach(g);
}

bool ky_snapshot_is_backed(
	const struct ky_geometry *g, int fd, uint32_t i, uint64_t pos, uint64_t len)
{
	uint64_t at = g->data_offset + i * g->data_stride + (pos & ky_geometry_ring_mask(g));

	return fd < 0 || !len ||
	       lseek(fd, (off_t)at, SEEK_HOLE) >= (off_t)(at + KY_BLOCK_ROOM + len);
}

/*
 * Returns the position of the block that follows, behind the head for the last one. 0: a writer has
 * used the block again meanwhile.
 */
static uint64_t block_after(const struct ky_geometry *g, const struct ky_block_entry *entry,
	uint64_t pos, const struct extent *e)
{
	uint64_t after = pos + g->block_size;

	if (!ky_geometry_spreads(g) || after > e->head)
		return after;
	return entry->next > pos && entry->next <= e->head && entry->next % g->block_size == 0
		       ? entry->next
		       : 0;
}

/* Returns -EBADMSG if the ring claims what it cannot hold, -EAGAIN if a writer was faster. */
static int copy_blocks(const struct ky_geometry *g, void *base, void *copy, uint32_t i,
	const struct extent *e, int fd)
{
	uint64_t mask = ky_geometry_ring_mask(g), len;
	struct ky_block_entry *entry;

	if (!e->head) /* never used: then none of it is accessed */
		return 0;
	for (uint64_t pos = e->oldest; pos <= e->head;) {
		entry = ky_geometry_entry(g, copy, i, pos);
		copy_words(entry, ky_geometry_entry(g, base, i, pos), sizeof(*entry));
		/*
		 * No more than was written: reading memory that nobody has accessed allocates it.
		 */
		len = e->head - pos < g->block_size ? e->head - pos : entry->used;
		len = KY_MIN(len, KY_BLOCK_LIMIT(g->block_size));
		if (!ky_snapshot_is_backed(g, fd, i, pos, len))
			return -EBADMSG;
		copy_words(ky_geometry_data(g, copy, i) + (pos & mask),
			ky_geometry_data(g, base, i) + (pos & mask),
			ky_align_up(len, sizeof(uint64_t)));
		pos = block_after(g, entry, pos, e);
		if (!pos)
			return -EAGAIN;
	}
	return 0;
}

/*
 * Returns the position behind the last block whose memory the daemon has given back, or is giving
 * back, of those that were copied; 0: there is none.
 */
static uint64_t behind_emptied(
	const struct ky_geometry *g, void *base, void *copy, uint32_t i, const struct extent *e)
{
	const struct ky_block_entry *copied, *now;
	uint64_t pos = e->oldest, behind = 0;

	while (ky_geometry_spreads(g) && e->head - pos >= g->block_size) {
		copied = ky_geometry_entry(g, copy, i, pos);
		now = ky_geometry_entry(g, base, i, pos);
		pos = block_after(g, copied, pos, e);
		if (ky_ring_load(&now->claimed) == pos + 1 ||
			ky_ring_load(&now->emptied) == pos + 1)
			behind = pos;
	}
	return behind;
}

/*
 * Returns the position of the first block that was not overwritten while it was copied. A position
 * behind the head means that there is none.
 */
static uint64_t first_whole(
	const struct ky_geometry *g, void *base, void *copy, uint32_t i, const struct extent *e)
{
	uint64_t oldest;

	/* Pairs with the writers' release fence between `oldest` and what they overwrite. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* Never less than the control block's, which is stored later. */
	oldest = KY_MAX(
		ky_ring_load(ky_geometry_oldest(g, base, i)), behind_emptied(g, base, copy, i, e));
	return oldest >= e->oldest && oldest % g->block_size == 0 ? oldest : UINT64_MAX;
}

int ky_snapshot_ring(
	struct ky_drain *d, const struct ky_geometry *g, void *base, void *copy, uint32_t i, int fd)
{
	const struct ky_ring_ctl *ctl = ky_geometry_ctl(g, base, i);
	struct ky_ring_ctl *own = ky_geometry_ctl(g, copy, i);
	uint64_t from = UINT64_MAX; /* until a writer was seen to be faster */
	struct extent e;
	int ret;

	ky_drain_init(d, g, copy, i);
	for (int tries = 0; tries < TRIES; tries++) {
		if (!read_extent(g, ctl, &e))
			continue;
		ret = copy_blocks(g, base, copy, i, &e, fd);
		if (ret == -EBADMSG)
			return ret;
		if (ret == -EAGAIN && ky_ring_load(&ctl->oldest) != e.oldest)
			from = e.head;
		if (ret == -EAGAIN)
			continue;
		from = first_whole(g, base, copy, i, &e);
		if (from > e.head)
			continue;
		for (unsigned int k = 0; k < KY_LOST_REASONS; k++)
			own->lost[k] = ky_ring_load(&ctl->lost[k]);
		own->head = e.word;
		own->last_ts = e.last_ts;
		return ky_drain_rejoin(d, from);
	}
	return from == UINT64_MAX ? -EBADMSG : -ENODATA;
}
