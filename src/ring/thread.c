/* SPDX-License-Identifier: MIT */
/*
 * Per-thread rings in plain C, for where restartable sequences are missing (old C library or
 * kernel, musl, i386, valgrind). The only competitors in a ring are the owner's own signal
 * handlers, which run to their end before the interrupted code goes on. Hence:
 *
 *   reserve   compare-and-exchange of `reserve`: a handler in between makes it fail. No lock prefix
 * is needed against one's own handlers. copy      header and payload to the reserved place. publish
 * by the outermost record alone (the one that began where the head stood): it raises the head to
 *             `reserve`, until the two agree. A plain store could put back what a handler
 * published.
 *
 * SIGKILL anywhere loses at most what was not published, and the next owner starts again at the
 * head.
 */

#include <linux/random.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "ring/writer.h"

/* Exchanges *p if it is *expected; against this thread's own signal handlers only. Releases what was written before. */
static bool swap_local(uint64_t *p, uint64_t *expected, uint64_t v)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool ok;

	__asm__ __volatile__("cmpxchgq %3, %1"
			     : "=@ccz"(ok), "+m"(*p), "+a"(*expected)
			     : "r"(v)
			     : "memory");
	return ok;
#else
	return __atomic_compare_exchange_n(
		p, expected, v, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
#endif
}

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void add_local(uint64_t *p, uint64_t n)
{
	uint64_t v = load(p);

	while (!swap_local(p, &v, v + n))
		;
}

static void raise_local(uint64_t *p, uint64_t to)
{
	uint64_t v = load(p);

	while (v < to && !swap_local(p, &v, to))
		;
}

/* What is published of that which is reserved; `low` are its low 32 bits. */
static uint64_t published(uint64_t reserved, uint64_t low)
{
	return reserved - (uint32_t)((uint32_t)reserved - (uint32_t)low);
}

/*
 * Which ring of a set is this thread's: a small table, because a thread rarely records into many
 * sets at once; what does not fit is found again by a walk over the owner words.
 */
#define KNOWN 4
static __thread KY_THREAD_TLS struct {
	const struct ky_set *set;
	uint32_t set_id, slot;
} known[KNOWN];
static __thread KY_THREAD_TLS uint64_t self;

static __thread KY_THREAD_TLS bool leaving; /* nobody will give back what is claimed from now on */

static uint32_t process, n_threads;
void (*ky_thread_claimed)(void);

/*
 * By chance, as nothing else differs between all programs that ever share a set: a pid comes again, stays across exec,
 * and means another process in each namespace. Not from AT_RANDOM, which holds the C library's secrets.
 */
void ky_thread_set_process(void)
{
	uint64_t r;

	if (syscall(SYS_getrandom, &r, sizeof(r), GRND_NONBLOCK) != (long)sizeof(r))
		r = (ky_clock_read(KY_CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 40) *
		    0x9e3779b97f4a7c15u;
	process = r >> 32 ? (uint32_t)(r >> 32) : 1;
	n_threads = (uint32_t)r;
	self = 0;
}

/* In an owner word: taken, but its positions are not in order yet. */
#define CLAIMING ((uint64_t)1 << 31)

/* This thread in owner words; a forked child's threads are others than the parent's. */
static uint64_t whoami(void)
{
	if (!self || (uint32_t)(self >> 32) != process)
		self = (uint64_t)process << 32 |
		       (__atomic_add_fetch(&n_threads, 1, __ATOMIC_RELAXED) & (CLAIMING - 1));
	return self;
}

static void remember(const struct ky_set *set, uint32_t slot)
{
	uint32_t at = (uint32_t)((uintptr_t)set / sizeof(*set)) % KNOWN;

	known[at].set = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	known[at].set_id = set->id;
	known[at].slot = slot;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	known[at].set = set;
}

/*
 * Takes over where the last owner stopped publishing; what a killed one had reserved beyond never happened. A long
 * header of his that was to open the window may be among that.
 */
static void begin_ownership(struct ky_ring_ctl *ctl)
{
	uint64_t head = __atomic_load_n(&ctl->head, __ATOMIC_ACQUIRE);
	uint64_t reserve = load(&ctl->reserve), count = load(&ctl->reserved_count);

	__atomic_store_n(&ctl->reserve, published(reserve, head), __ATOMIC_RELAXED);
	__atomic_store_n(&ctl->reserved_count, published(count, head >> 32), __ATOMIC_RELAXED);
	__atomic_store_n(&ctl->window, 0, __ATOMIC_RELAXED);
}

/*
 * This thread's ring: as known, else one it owns already, else a free one, which sets *ret_claimed.
 * -1: all are taken.
 */
static int64_t find_slot(struct ky_set *set, bool *ret_claimed)
{
	uint64_t me = whoami();
	uint32_t at = (uint32_t)((uintptr_t)set / sizeof(*set)) % KNOWN, n = set->geo.n_rings;

	if (known[at].set == set && known[at].set_id == set->id && known[at].slot < n &&
		load(&ky_geometry_ctl(&set->geo, set->base, known[at].slot)->owner) == me)
		return known[at].slot;
	for (uint32_t i = 0; i < n; i++) {
		if (load(&ky_geometry_ctl(&set->geo, set->base, i)->owner) == me) {
			remember(set, i);
			return i;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		struct ky_ring_ctl *ctl = ky_geometry_ctl(&set->geo, set->base, i);
		uint64_t nobody = 0;

		/* Acquire: pairs with the release by the owner before. A handler in between takes another ring. */
		if (load(&ctl->owner) ||
			!__atomic_compare_exchange_n(&ctl->owner, &nobody, me | CLAIMING, false,
				__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		begin_ownership(ctl);
		__atomic_store_n(&ctl->owner, me, __ATOMIC_RELEASE);
		remember(set, i);
		*ret_claimed = true;
		if (ky_thread_claimed && !leaving)
			ky_thread_claimed();
		return i;
	}
	return -1;
}

void ky_thread_leave(void)
{
	leaving = true;
}

void ky_thread_release(struct ky_set *set)
{
	for (uint32_t i = 0; self && i < set->geo.n_rings; i++) {
		struct ky_ring_ctl *ctl = ky_geometry_ctl(&set->geo, set->base, i);

		if (load(&ctl->owner) == self)
			__atomic_store_n(&ctl->owner, 0, __ATOMIC_RELEASE);
	}
}

static void copy_text(uint8_t *to, const volatile uint8_t *from, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		uint8_t c = from[i];

		to[i] = c ? c : '#';
	}
}

static void copy_record(uint8_t *to, uint32_t id, uint64_t ts, bool extended, const void *payload,
	uint32_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	uint32_t compact = (uint32_t)ts << KY_ID_BITS | id;

	if (extended) {
		to[0] = KY_ID_EXTENDED;
		memcpy(to + 1, &id, sizeof(id));
		memcpy(to + 5, &ts, sizeof(ts));
		to += KY_HEADER_EXTENDED;
	} else {
		memcpy(to, &compact, sizeof(compact));
		to += KY_HEADER_COMPACT;
	}
	if (!n_pieces)
		memcpy(to, payload, len);
	for (size_t i = 0; i < n_pieces; i++) {
		if (pieces[i].flags & KYMO_PIECE_TEXT)
			copy_text(to, pieces[i].ptr, pieces[i].len);
		else
			memcpy(to, pieces[i].ptr, pieces[i].len);
		to += pieces[i].len;
	}
}

/* Raises the head to all that is reserved. Only the outermost record gets here, so all that is
 * copied. */
static void publish(struct ky_ring_ctl *ctl)
{
	for (;;) {
		uint64_t head = load(&ctl->head), end = load(&ctl->reserve);
		uint64_t count = load(&ctl->reserved_count);

		if (load(&ctl->reserve) != end)
			continue; /* a handler recorded in between: the count may be its record's */
		if (published(end, head) == end)
			return;
		/* Releases all of it: pairs with the reader's acquire of head. */
		swap_local(&ctl->head, &head, ky_head(end, count));
	}
}

/*
 * Makes the block at `begin` free to be entered: false when the consumer has yet to read what lies there. In overwrite
 * mode nobody has to, but what is not published is not overwritten: a handler's records end before those of the record
 * that it interrupted, which is still being copied.
 */
static bool free_block(struct ky_set *set, uint32_t slot, uint64_t begin)
{
	const struct ky_geometry *g = &set->geo;
	struct ky_ring_ctl *ctl = ky_geometry_ctl(g, set->base, slot);
	uint64_t end = begin + g->block_size, kept;

	if (end <= g->data_stride)
		return true;
	/* Acquire: pairs with the consumer's release of the block that is entered. */
	kept = g->overwrite ? published(begin, load(&ctl->head)) & ~(uint64_t)(g->block_size - 1)
			    : __atomic_load_n(&set->consumed[slot], __ATOMIC_ACQUIRE);
	if (end - g->data_stride > kept)
		return false;
	raise_local(&ctl->oldest, end - g->data_stride);
	/* Pairs with ky_snapshot_ring's acquire: readers see it before they see anything overwritten. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

/* The record into ring `slot`, which is this thread's. */
static int write_record(struct ky_set *set, uint32_t slot, uint32_t id, const void *payload,
	uint32_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	struct ky_ring_ctl *ctl = ky_geometry_ctl(&set->geo, set->base, slot);
	uint64_t mask = set->geo.block_size - 1, ring_size = set->geo.data_stride;
	uint64_t from, begin, end, ts;
	bool extended;

	from = load(&ctl->reserve);
	do {
		begin = from;
		ts = ky_clock_read(set->geo.clock);
		ts = KY_MAX(ts, load(&ctl->last_ts));
		extended = id >= KY_ID_EXTENDED || (ts - load(&ctl->window)) >> KY_TS_BITS;
		if ((from & mask) + KY_HEADER_EXTENDED + len > KY_BLOCK_LIMIT(mask + 1)) {
			begin = (from | mask) + 1;
			if (!free_block(set, slot, begin)) {
				__atomic_fetch_add(&ctl->lost[KY_LOST_FULL], 1, __ATOMIC_RELAXED);
				return KY_WRITE_FULL;
			}
		}
		end = begin + len + (extended ? KY_HEADER_EXTENDED : KY_HEADER_COMPACT);
	} while (!swap_local(&ctl->reserve, &from, end));
	/* Records are published in the order of their reservation: those that come now are behind this one. */
	if (extended)
		raise_local(&ctl->window, ky_window(ts));
	if (begin != from) {
		struct ky_block_entry *entered = ky_geometry_entry(
			&set->geo, set->base, slot, begin);

		__atomic_store_n(&ky_geometry_entry(&set->geo, set->base, slot, from)->used,
			from & mask, __ATOMIC_RELAXED);
		__atomic_store_n(&entered->begin_ts, ts, __ATOMIC_RELAXED);
		/* Records that a handler interrupts may not be counted yet: then the next block's have them. */
		__atomic_store_n(
			&entered->begin_count, load(&ctl->reserved_count), __ATOMIC_RELAXED);
	}
	raise_local(&ctl->last_ts, ts);
	add_local(&ctl->reserved_count, 1);
	copy_record(ky_geometry_data(&set->geo, set->base, slot) + (begin & (ring_size - 1)), id,
		ts, extended, payload, len, pieces, n_pieces);
	if (published(from, load(&ctl->head)) == from)
		publish(ctl);
	return KY_WRITE_DONE;
}

int ky_thread_record(struct ky_set *set, uint32_t id, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	bool claimed = false;
	int64_t slot = find_slot(set, &claimed);
	int r;

	if (slot < 0)
		return KY_WRITE_NO_RING;
	r = write_record(set, (uint32_t)slot, id, payload, len, pieces, n_pieces);
	/* Not in a handler on top of the record that claimed it: that one still writes. */
	if (ky_unlikely(claimed && leaving))
		__atomic_store_n(&ky_geometry_ctl(&set->geo, set->base, (uint32_t)slot)->owner, 0,
			__ATOMIC_RELEASE);
	return r;
}
