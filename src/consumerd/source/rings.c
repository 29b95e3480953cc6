/* SPDX-License-Identifier: MIT */
#include "consumerd/source/rings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ring/slots.h"
#include "ring/snapshot.h"

struct ring {
	struct source source;
	struct rings *set;
	uint32_t number;
	struct ky_drain drain; /* its position is that of the last call, not what was taken */
	uint64_t slot_word;    /* at the last look; UINT64_MAX: none yet */
};

struct rings {
	struct source_set set;
	struct ky_geometry geometry;
	void *base;	    /* mapping */
	uint64_t *consumed; /* mapping; the positions that writers see */
	uint32_t n_copied;
	struct ring *rings; /* room for all */
	int rings_fd;	    /* of threads' rings in a memfd; else -1 */
	/* bytes that the rings hold, as they say, in this round; the memory that they have */
	uint64_t claimed, in_use;
};

static bool has_slots(const struct rings *set)
{
	return set->geometry.mode == KY_SET_PER_THREAD;
}

static struct ring *ring_of(struct source *s)
{
	return ky_container_of(s, struct ring, source);
}

/* --- one ring --- */

static struct source_mark drain_mark(const struct ky_drain *d)
{
	return (struct source_mark){d->pos, d->count, d->ts};
}

static void drain_move(struct ky_drain *d, const struct source_mark *to)
{
	d->pos = to->pos;
	d->count = to->count;
	d->ts = to->ts;
}

/*
 * Returns the ring's slot word: its owner, or the number of the release that freed it. A CPU's ring
 * is always owned, until the set has ended.
 */
static uint64_t ring_slot_word(const struct ring *r)
{
	if (r->set->set.ended)
		return 0;
	return has_slots(r->set) ? ky_slot_word(&r->set->geometry, r->set->base, r->number)
				 : KY_SLOT_OWNED;
}

static void ring_copy_counts(struct ring *r)
{
	memcpy(r->source.lost, r->drain.lost, sizeof(r->source.lost));
	r->source.n_lost = ky_drain_lost(&r->drain);
}

/* Counts what programs still record into an abandoned ring; also for the next consumer. */
static void ring_store_abandoned(struct ring *r)
{
	struct ky_resume_stream *to = r->source.resume;

	to->abandoned_head = r->drain.abandoned_head;
	to->n_abandoned = r->drain.n_abandoned;
	memcpy(to->lost, r->drain.lost, sizeof(to->lost));
	memcpy(to->lost_seen, r->drain.lost_seen, sizeof(to->lost_seen));
	ring_copy_counts(r);
}

static int ring_look_abandoned(struct ring *r)
{
	if (!r->set->set.own) {
		ky_drain_look(&r->drain, false);
		ring_store_abandoned(r);
	}
	return SOURCE_IDLE;
}

/*
 * Returns false if the ring claims records for which no memory was ever allocated. It examines the
 * ring only if the rings of this round claim more than there is.
 */
static bool ring_is_backed(const struct ring *r)
{
	const struct ky_geometry *g = &r->set->geometry;
	uint64_t size = g->block_size, head = r->drain.head, pos = r->drain.pos & ~(size - 1);

	r->set->claimed += head - r->drain.pos;
	if (r->set->rings_fd < 0 || r->set->claimed <= r->set->in_use)
		return true;
	for (; pos < head; pos += size) {
		uint64_t *used = &ky_geometry_entry(g, r->set->base, r->number, pos)->used;
		uint64_t len = __atomic_load_n(used, __ATOMIC_RELAXED);

		len = head - pos < size ? head - pos : KY_MIN(len, KY_BLOCK_LIMIT(size));
		if (!ky_snapshot_is_backed(g, r->set->rings_fd, r->number, pos, len))
			return false;
	}
	return true;
}

/*
 * A thread's ring that was given back and is written does not change until another thread has it.
 * The first ring is an exception: it counts the events that had no ring.
 */
static int ring_look(struct source *s, bool flush, bool written)
{
	struct ring *r = ring_of(s);
	uint64_t word = ring_slot_word(r);
	bool same = word == r->slot_word;

	if (s->abandoned)
		return ring_look_abandoned(r);
	s->released = !(word & KY_SLOT_OWNED);
	if (r->number && s->released && written && same)
		return SOURCE_IDLE;
	r->slot_word = word;
	drain_move(&r->drain, &s->taken);
	r->drain.latest = r->set->set.latest;
	if (ky_drain_look(&r->drain, flush || s->released) < 0 || !ring_is_backed(r))
		return -EBADMSG;
	s->head = r->drain.head;
	s->head_count = r->drain.head_count;
	s->volume = ky_drain_volume(&r->drain);
	s->n_ready = ky_drain_ready(&r->drain);
	s->settled = r->drain.settled;
	ring_copy_counts(r);
	return 0;
}

static bool ring_next(
	struct source *s, struct source_mark *at, bool partial, struct ky_drain_piece *ret_piece)
{
	struct ring *r = ring_of(s);
	bool found;

	drain_move(&r->drain, at);
	found = ky_drain_next(&r->drain, partial, ret_piece);
	if (found)
		ky_drain_take(&r->drain, ret_piece);
	*at = drain_mark(&r->drain);
	s->more |= r->drain.quarantined && !s->abandoned; /* the next look gives it up */
	return found;
}

/* Returns whether a position lies in a block that writers use only while we are late. */
static bool is_beyond_home(const struct ky_geometry *g, uint64_t pos)
{
	return (pos & ky_geometry_ring_mask(g)) >= ky_geometry_home_size(g);
}

static void ring_take(struct source *s, const struct source_mark *to)
{
	struct rings *rings = ring_of(s)->set;
	uint64_t *consumed = &rings->consumed[ring_of(s)->number];

	rings->set.grown |= is_beyond_home(&rings->geometry, s->taken.pos);
	s->taken = *to;
	if (__atomic_load_n(consumed, __ATOMIC_RELAXED) == to->pos)
		return;
	/* Pairs with the writers' acquire: they overwrite only what we have read. */
	__atomic_store_n(consumed, to->pos, __ATOMIC_RELEASE);
}

/*
 * Returns the position behind a last packet that ended at `end`: there or, if the dead consumer had
 * found no more records in that block and had reported that to the writers, at the block that
 * follows. In a spreading ring that may be any later one.
 */
static uint64_t resume_position(const struct ring *r, uint64_t end, uint64_t consumed)
{
	uint64_t size = r->drain.block_size, next = (end / size + 1) * size;
	bool spread = ky_geometry_spreads(&r->set->geometry) && consumed % size == 0 &&
		      consumed > next && consumed - end < r->drain.reach;

	return consumed == next || spread ? consumed : end;
}

static int ring_resume(struct source *s, const struct source_mark *stored)
{
	struct ring *r = ring_of(s);
	uint64_t consumed = __atomic_load_n(&r->set->consumed[r->number], __ATOMIC_RELAXED);
	int ret = stored ? ky_drain_resume(&r->drain, resume_position(r, stored->pos, consumed),
				   stored->count, stored->ts)
			 : ky_drain_rejoin(&r->drain, consumed);

	s->taken = drain_mark(&r->drain);
	s->head = r->drain.head;
	s->volume = ky_drain_volume(&r->drain);
	return ret;
}

/* Reads struct source.words. base: the memory that programs write. */
static void read_words(uint64_t words[3], const struct ky_geometry *g, void *base, uint32_t ring)
{
	const struct ky_ring_ctl *ctl = ky_geometry_ctl(g, base, ring);

	words[0] = __atomic_load_n(&ctl->head, __ATOMIC_RELAXED);
	words[1] = __atomic_load_n(&ctl->oldest, __ATOMIC_RELAXED);
	words[2] = __atomic_load_n(ky_geometry_oldest(g, base, ring), __ATOMIC_RELAXED);
}

/*
 * Loads the counts that an earlier consumer stored. A process that damaged its own ring may have
 * changed the counts in it, too: they do not count.
 */
static void ring_abandon(struct source *s, bool again)
{
	struct ring *r = ring_of(s);
	struct ky_drain *d = &r->drain;

	if (!r->set->set.copied)
		read_words(s->words, &r->set->geometry, r->set->base, r->number);
	drain_move(d, &s->taken);
	if (!again)
		d->n_abandoned += source_n_left(s);
	ky_drain_abandon(d);
	s->taken = drain_mark(d);
	s->abandoned = true;
	s->settled = s->more = false;
	if (again) {
		d->abandoned_head = s->resume->abandoned_head;
		d->n_abandoned = s->resume->n_abandoned;
		memcpy(d->lost, s->resume->lost, sizeof(d->lost));
		memcpy(d->lost_seen, s->resume->lost_seen, sizeof(d->lost_seen));
	} else if (r->set->set.own) {
		memset(d->lost, 0, sizeof(d->lost));
		d->n_abandoned = 0;
	}
	ring_store_abandoned(r);
}

static const struct source_ops ring_ops = {
	.look = ring_look,
	.next = ring_next,
	.take = ring_take,
	.resume = ring_resume,
	.abandon = ring_abandon,
};

/* --- the set --- */

static struct rings *rings_of(const struct source_set *set)
{
	return ky_container_of((struct source_set *)set, struct rings, set);
}

/* Of threads' rings, the first counts the events that had no ring. */
static uint32_t n_used_in(const struct rings *set, void *base)
{
	return has_slots(set) ? KY_MAX(ky_slots_claimed(&set->geometry, base), 1u)
			      : set->geometry.n_rings;
}

static uint32_t rings_n_used(const struct source_set *set)
{
	struct rings *rings = rings_of(set);
	struct stat st;

	rings->claimed = 0;
	if (rings->rings_fd >= 0 && fstat(rings->rings_fd, &st) == 0)
		rings->in_use = (uint64_t)st.st_blocks * 512;
	return set->copied ? rings->n_copied : n_used_in(rings, rings->base);
}

static struct source *rings_open(struct source_set *set, uint32_t i)
{
	struct rings *rings = rings_of(set);
	struct ring *r = &rings->rings[i];
	struct ky_resume_stream *resume = (void *)((char *)rings->consumed +
						   ky_resume_offset(rings->geometry.n_rings));

	if (!set->copied)
		ky_drain_init(&r->drain, &rings->geometry, rings->base, i);
	r->set = rings;
	r->number = i;
	r->slot_word = UINT64_MAX;
	r->source = (struct source){
		.ops = &ring_ops,
		.taken = drain_mark(&r->drain),
		.head = r->drain.head,
		.block_size = rings->geometry.block_size,
		.n_blocks = rings->geometry.n_home,
		.capacity = rings->geometry.data_stride,
		.has_owner = has_slots(rings),
		.cpu = i,
		.resume = &resume[i],
		/* of a ring that could not be copied */
		.words = {r->source.words[0], r->source.words[1], r->source.words[2]},
	};
	return &r->source;
}

static void rings_free(struct source_set *set)
{
	struct rings *rings = rings_of(set);

	if (rings->base)
		munmap(rings->base, rings->geometry.total_size);
	if (rings->consumed)
		munmap(rings->consumed, ky_consumed_size(rings->geometry.n_rings));
	ky_close(rings->rings_fd);
	free(rings->rings);
	free(rings);
}

static const struct source_set_ops rings_ops = {
	.n_used = rings_n_used,
	.open = rings_open,
	.free = rings_free,
};

static int rings_new(const struct ky_cons_ring_set *m, bool copied, struct rings **ret_set)
{
	struct rings *rings = calloc(1, sizeof(*rings));
	int ret;

	if (!rings)
		return -ENOMEM;
	KY_GEOMETRY_COPY(&rings->geometry, m);
	ret = ky_geometry_take(&rings->geometry);
	if (!ret)
		rings->rings = calloc(m->n_rings, sizeof(*rings->rings));
	if (!rings->rings) {
		free(rings);
		return ret < 0 ? -EBADMSG : -ENOMEM;
	}
	rings->rings_fd = -1;
	rings->set = (struct source_set){.ops = &rings_ops,
		.n_max = m->n_rings,
		.clock = rings->geometry.clock,
		.block_size = rings->geometry.block_size,
		.own = m->instance,
		.copied = copied};
	*ret_set = rings;
	return 0;
}

/*
 * Maps a file; fd -1: private memory. The file may be shorter, or become so: the bytes beyond its
 * end are zeros (svc/sigbus.h).
 */
static int map_memory(int fd, uint64_t size, int prot, void **ret_base)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	void *base = mmap(NULL, size, prot, flags, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	*ret_base = base;
	return 0;
}

static int map_both(struct rings *rings, int rings_fd, int rings_prot, int consumed_fd)
{
	int ret = map_memory(rings_fd, rings->geometry.total_size, rings_prot, &rings->base);

	return ret < 0 ? ret
		       : map_memory(consumed_fd, ky_consumed_size(rings->geometry.n_rings),
				 PROT_READ | PROT_WRITE, (void **)&rings->consumed);
}

/* A memfd has holes where nobody wrote. File systems may report holes in memory that is taken. */
static bool has_holes(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

int rings_map(const struct ky_cons_ring_set *m, int rings_fd, int consumed_fd,
	struct source_set **ret_set)
{
	struct rings *rings;
	int ret = rings_new(m, false, &rings);

	if (ret < 0)
		return ret;
	if (has_slots(rings) && has_holes(rings_fd))
		rings->rings_fd = fcntl(rings_fd, F_DUPFD_CLOEXEC, 0);
	ret = map_both(rings, rings_fd, PROT_READ, consumed_fd);
	if (ret < 0)
		rings_free(&rings->set);
	else
		*ret_set = &rings->set;
	return ret;
}

/* A ring that cannot be copied is found invalid at its first look. */
static int copy_all(struct rings *rings, int rings_fd)
{
	const struct ky_geometry *g = &rings->geometry;
	void *shared = NULL;
	int ret = map_both(rings, -1, PROT_READ | PROT_WRITE, -1);
	int fd = has_slots(rings) && has_holes(rings_fd) ? rings_fd : -1;

	if (!ret)
		ret = map_memory(rings_fd, g->total_size, PROT_READ, &shared);
	if (ret < 0)
		return ret;
	rings->n_copied = n_used_in(rings, shared);
	for (uint32_t i = 0; i < rings->n_copied; i++) {
		struct ky_drain *d = &rings->rings[i].drain;

		if (ky_snapshot_ring(d, g, shared, rings->base, i, fd) == -EBADMSG) {
			read_words(rings->rings[i].source.words, g, shared, i);
			ky_drain_abandon(d);
		}
		rings->set.n_overwritten += d->count;
	}
	munmap(shared, g->total_size);
	return 0;
}

int rings_copy(const struct ky_cons_ring_set *m, int rings_fd, struct source_set **ret_set)
{
	struct rings *rings;
	int ret = rings_new(m, true, &rings);

	if (ret < 0)
		return ret;
	ret = copy_all(rings, rings_fd);
	if (ret < 0)
		rings_free(&rings->set);
	else
		*ret_set = &rings->set;
	return ret;
}
