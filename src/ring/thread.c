/* SPDX-License-Identifier: MIT */
/*
 * Per-thread rings in plain C: for channels that request them, and for systems without restartable
 * sequences (old C library or kernel, musl, i386, valgrind). Only the owner's own signal handlers
 * compete for a ring, and they run to their end before the interrupted code continues. Hence three
 * steps:
 *
 *   reserve   Compare-and-exchange of `reserve`: it fails if a handler recorded in between. Against
 *             one's own handlers no lock prefix is needed.
 *   copy      Copy header and payload to the reserved place.
 *   publish   Only the outermost record publishes, which is the one that began at the head. It
 *             raises the head to `reserve` until the two are equal. A plain store could undo what a
 *             handler published.
 *
 * SIGKILL at any point loses at most what was not published. The next owner starts behind the head
 * with a new block: all records of a block have the same owner.
 */

#include <linux/random.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "ring/slots.h"
#include "ring/writer.h"

/*
 * Exchanges *p if it is *expected. Atomic only against this thread's own signal handlers. Releases
 * what was written before.
 */
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

/*
 * Returns the oldest position of a ring, for ky_head_pos of what is loaded later: no head is before
 * it or far ahead of it.
 */
static uint64_t load_oldest(const struct ky_ring_ctl *ctl)
{
	/* Acquire: if a handler runs in between, both values are later, not this one alone. */
	return __atomic_load_n(&ctl->oldest, __ATOMIC_ACQUIRE);
}

/*
 * This thread's ring in each set. The table is small, because a thread rarely records into many
 * sets at once. A ring that is not in the table is found by a walk over the owner words.
 */
#define KNOWN 4
static __thread KY_THREAD_TLS struct {
	const struct ky_set *set;
	uint64_t me;
	uint32_t turn, slot;
} known[KNOWN];
static __thread KY_THREAD_TLS uint64_t self;
/* number of slots in all sets; higher in a forked child */
static __thread KY_THREAD_TLS uint64_t n_own;

/* the thread ends: it must itself release what it claims from now on */
static __thread KY_THREAD_TLS bool leaving;

static uint32_t process, n_threads, pid;
void (*ky_thread_claimed)(void);

/*
 * Chooses the process's number at random, because nothing else differs between all processes that
 * ever share a set: a pid is used again, stays the same across exec, and means another process in
 * each namespace. It is not taken from AT_RANDOM, which holds the C library's secrets.
 */
void ky_thread_set_process(void)
{
	uint64_t r;

	if (syscall(SYS_getrandom, &r, sizeof(r), GRND_NONBLOCK) != (long)sizeof(r))
		r = (ky_clock_read(KY_CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 40) *
		    0x9e3779b97f4a7c15u;
	process = r >> 32 ? (uint32_t)(r >> 32) : 1;
	n_threads = (uint32_t)r;
	pid = (uint32_t)getpid();
	self = 0;
}

void ky_thread_forget_process(void)
{
	process = 0;
}

uint32_t ky_thread_process(void)
{
	return process;
}

static void become_known(void)
{
	uint32_t n = __atomic_add_fetch(&n_threads, 1, __ATOMIC_RELAXED) << 2;
	uint64_t before = self;

	/* A handler may have been first. */
	swap_local(&self, &before, (uint64_t)process << 32 | n | KY_SLOT_OWNED);
}

/* Returns this thread's value in slot words. A forked child's threads differ from the parent's. */
static uint64_t whoami(void)
{
	if (ky_unlikely((uint32_t)(self >> 32) != process))
		become_known();
	return self;
}

/* Fills in the names by which users know this thread. */
static void introduce(const struct ky_set *set, struct ky_owner *ret_owner)
{
	int saved = errno;

	*ret_owner = (struct ky_owner){.pid = pid};
	if (!set->named)
		return;
	ret_owner->tid = (uint32_t)syscall(SYS_gettid);
	prctl(PR_GET_NAME, ret_owner->name);
	errno = saved;
}

/* Copies word by word: a reader of *to may be about to find that it has changed. */
static void copy_owner(struct ky_owner *to, const struct ky_owner *from)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(to->words); i++)
		__atomic_store_n(&to->words[i], from->words[i], __ATOMIC_RELAXED);
}

static void remember(const struct ky_set *set, uint32_t slot)
{
	uint32_t at = (uint32_t)((uintptr_t)set / sizeof(*set)) % KNOWN;

	known[at].set = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (leaving)
		return; /* a handler, while the thread releases what it owns */
	known[at].me = self;
	known[at].turn = set->turn;
	known[at].slot = slot;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	known[at].set = set;
}

/* Returns the position of the head. */
static uint64_t published(const struct ky_ring_ctl *ctl)
{
	uint64_t oldest = load_oldest(ctl);

	return ky_head_pos(load(&ctl->head), oldest);
}

/*
 * Returns true if the block at `begin` may be entered. It may not before the consumer has read it.
 * In overwrite mode nobody has to read it, but what is not published is not overwritten: a
 * handler's records end before those of the record that it interrupted, which is still being
 * copied.
 */
static bool may_enter(const struct ky_set *set, uint32_t slot, uint64_t begin)
{
	const struct ky_geometry *g = &set->geo;
	const struct ky_ring_ctl *ctl = ky_geometry_ctl(g, set->base, slot);
	uint64_t end = begin + g->block_size, kept;

	if (end <= g->data_stride)
		return true;
	/* Acquire: pairs with the consumer's release of the block that is entered. */
	kept = g->overwrite ? published(ctl) & ~(uint64_t)(g->block_size - 1)
			    : __atomic_load_n(&set->consumed[slot], __ATOMIC_ACQUIRE);
	return end - g->data_stride <= kept;
}

/* Allows overwriting the block at `begin`, which is about to be entered. */
static void give_up_oldest(const struct ky_set *set, uint32_t slot, uint64_t begin)
{
	const struct ky_geometry *g = &set->geo;
	uint64_t end = begin + g->block_size;

	if (end <= g->data_stride)
		return;
	raise_local(&ky_geometry_ctl(g, set->base, slot)->oldest, end - g->data_stride);
	raise_local(ky_geometry_oldest(g, set->base, slot), end - g->data_stride);
	/*
	 * Pairs with ky_snapshot_ring's acquire: readers see it before they see anything
	 * overwritten.
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/*
 * Updates the block tables when a writer leaves the block that ends at `from` (a head, or
 * `reserve`) for the block at `begin`. The number of records is known in 32 bits; the upper bits
 * come from the entry of the block that is left. A killed owner may have written that entry, which
 * then is ahead.
 */
static void note_block(
	const struct ky_set *set, uint32_t slot, uint64_t from, uint64_t begin, uint64_t ts)
{
	const struct ky_geometry *g = &set->geo;
	struct ky_block_entry *left = ky_geometry_entry(g, set->base, slot, (uint32_t)from);
	struct ky_block_entry *entered = ky_geometry_entry(g, set->base, slot, begin);
	uint64_t near = load(&left->begin_count);
	uint64_t count = near + (uint64_t)(int32_t)((uint32_t)(from >> 32) - (uint32_t)near);

	__atomic_store_n(&left->used, from & (g->block_size - 1), __ATOMIC_RELAXED);
	__atomic_store_n(&entered->begin_ts, ts, __ATOMIC_RELAXED);
	__atomic_store_n(&entered->begin_count, count, __ATOMIC_RELAXED);
	copy_owner(&entered->owner, &ky_geometry_ctl(g, set->base, slot)->owner);
}

static uint64_t block_after(const struct ky_set *set, uint64_t pos)
{
	return (pos | (set->geo.block_size - 1)) + 1;
}

/*
 * Returns true if a new owner could begin. If the head is in the middle of a block, it needs the
 * next one.
 */
static bool has_room(const struct ky_set *set, uint32_t slot)
{
	uint64_t at = published(ky_geometry_ctl(&set->geo, set->base, slot));

	return !(at & (set->geo.block_size - 1)) || may_enter(set, slot, block_after(set, at));
}

/*
 * Takes over a ring behind what the last owner published, in a new block. A killed owner may have
 * reserved more: that is void, even a long header that was to open the window.
 */
static void begin_ownership(struct ky_set *set, uint32_t slot)
{
	struct ky_ring_ctl *ctl = ky_geometry_ctl(&set->geo, set->base, slot);
	uint64_t at = published(ctl), head = load(&ctl->head), next = at;
	struct ky_owner owner;

	introduce(set, &owner);
	copy_owner(&ctl->owner, &owner);
	__atomic_store_n(&ctl->window, 0, __ATOMIC_RELAXED);
	if (at & (set->geo.block_size - 1)) {
		next = block_after(set, at);
		give_up_oldest(set, slot, next);
		note_block(set, slot, head, next, load(&ctl->last_ts));
	} else {
		copy_owner(&ky_geometry_entry(&set->geo, set->base, slot, at)->owner, &owner);
	}
	head = ky_head(next, head >> 32);
	__atomic_store_n(&ctl->reserve, head, __ATOMIC_RELAXED);
	/* Release: pairs with the reader's acquire of head. */
	__atomic_store_n(&ctl->head, head, __ATOMIC_RELEASE);
}

/*
 * Claims a slot. Acquire: pairs with the previous owner's release. A handler in between claims
 * another slot.
 */
static bool take(const struct ky_set *set, uint32_t slot, uint64_t word, uint64_t me)
{
	return __atomic_compare_exchange_n(ky_geometry_slot(&set->geo, set->base, slot), &word,
		me | KY_SLOT_CLAIMING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Claims a slot that nobody ever had. Returns -1 if there is none. */
static int64_t claim_unused(struct ky_set *set, uint64_t me)
{
	struct ky_set_slots *shared = ky_slots_shared(set->base);
	uint64_t i;

	do {
		i = load(&shared->n_claimed);
		do {
			if (i >= set->geo.n_rings)
				return -1;
		} while (!__atomic_compare_exchange_n(
			&shared->n_claimed, &i, i + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	} while (!take(set, (uint32_t)i, 0, me));
	if (i >= __atomic_load_n(&set->n_prepared, __ATOMIC_RELAXED))
		__atomic_fetch_add(&shared->n_unprepared, 1, __ATOMIC_RELAXED);
	return (int64_t)i;
}

/*
 * Finds the slot that was freed first, among those in which a thread could begin now. Returns -1 if
 * there is none.
 */
static int64_t find_released(const struct ky_set *set, uint64_t *ret_word)
{
	uint32_t n = ky_slots_claimed(&set->geo, set->base);
	uint64_t best = UINT64_MAX;
	int64_t found = -1;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t word = ky_slot_word(&set->geo, set->base, i);

		if (word & KY_SLOT_OWNED || word >= best || !has_room(set, i))
			continue;
		best = word;
		found = i;
	}
	*ret_word = best;
	return found;
}

/*
 * Searches only if a slot was freed since the last search found none: so when many threads start,
 * not each of them examines all slots.
 */
static int64_t claim_released(struct ky_set *set, uint64_t me)
{
	uint64_t n_released = load(&ky_slots_shared(set->base)->n_released), word;
	int64_t slot;

	if (n_released == load(&set->n_exhausted))
		return -1;
	do {
		slot = find_released(set, &word);
		if (slot < 0)
			__atomic_store_n(&set->n_exhausted, n_released, __ATOMIC_RELAXED);
	} while (slot >= 0 && !take(set, (uint32_t)slot, word, me));
	return slot;
}

/*
 * Claims a free slot. Unused slots of the pool come first: so the records of ended threads stay as
 * long as possible.
 */
static int64_t claim(struct ky_set *set, uint64_t me)
{
	int64_t slot = -1;

	if (ky_slots_claimed(&set->geo, set->base) < set->pool)
		slot = claim_unused(set, me);
	if (slot < 0)
		slot = claim_released(set, me);
	if (slot < 0)
		slot = claim_unused(set, me);
	if (slot < 0)
		return -1;
	begin_ownership(set, (uint32_t)slot);
	__atomic_store_n(
		ky_geometry_slot(&set->geo, set->base, (uint32_t)slot), me, __ATOMIC_RELEASE);
	__atomic_fetch_add(&set->n_owned, 1, __ATOMIC_RELAXED);
	add_local(&n_own, 1);
	return slot;
}

static void give_back(struct ky_set *set, uint32_t slot)
{
	add_local(&n_own, -1);
	__atomic_fetch_sub(&set->n_owned, 1, __ATOMIC_RELAXED);
	ky_slot_release(&set->geo, set->base, slot);
}

/* Finds a slot that this thread owns. Returns -1 if there is none. */
static int64_t find_own(const struct ky_set *set, uint64_t me)
{
	uint32_t n = n_own ? ky_slots_claimed(&set->geo, set->base) : 0;

	for (uint32_t i = 0; i < n; i++)
		if (ky_slot_word(&set->geo, set->base, i) == me)
			return i;
	return -1;
}

/*
 * Finds this thread's ring: in the table, else one that it already owns, else a free one, which
 * sets *ret_claimed. Returns -1 if all are taken.
 */
static int64_t find_slot(struct ky_set *set, bool *ret_claimed)
{
	uint32_t at = (uint32_t)((uintptr_t)set / sizeof(*set)) % KNOWN;
	uint64_t me = whoami();
	int64_t slot;

	if (ky_likely(known[at].set == set && known[at].turn == set->turn && known[at].me == me))
		return known[at].slot;
	slot = find_own(set, me);
	if (slot < 0) {
		slot = claim(set, me);
		*ret_claimed = slot >= 0;
	}
	if (slot < 0)
		return -1;
	remember(set, (uint32_t)slot);
	__atomic_store_n(&set->used[slot], 1, __ATOMIC_RELAXED);
	if (*ret_claimed && ky_thread_claimed && !leaving)
		ky_thread_claimed();
	return slot;
}

void ky_thread_leave(void)
{
	leaving = true;
}

void ky_thread_release(struct ky_set *set)
{
	uint32_t at = (uint32_t)((uintptr_t)set / sizeof(*set)) % KNOWN;
	int64_t slot;

	known[at].set = NULL; /* whichever set it was: its slot is found again */
	while (self && (slot = find_own(set, self)) >= 0)
		give_back(set, (uint32_t)slot);
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

/*
 * Raises the head to all that is reserved. Only the outermost record calls it, so all of that is
 * copied.
 */
static void publish(struct ky_ring_ctl *ctl)
{
	for (;;) {
		uint64_t head = load(&ctl->head), end = load(&ctl->reserve);

		if (head == end)
			return;
		/* Releases all of it: pairs with the reader's acquire of head. */
		swap_local(&ctl->head, &head, end);
	}
}

/* Writes the record into ring `slot`, which this thread owns. */
static int write_record(struct ky_set *set, uint32_t slot, uint32_t id, const void *payload,
	uint32_t len, const struct kymo_piece *pieces, size_t n_pieces, bool again)
{
	struct ky_ring_ctl *ctl = ky_geometry_ctl(&set->geo, set->base, slot);
	uint64_t mask = set->geo.block_size - 1, ring_size = set->geo.data_stride;
	uint64_t oldest, from, head, begin, end, ts;
	bool extended;

	for (;;) {
		oldest = load_oldest(ctl);
		from = load(&ctl->reserve);
		begin = ky_head_pos(from, oldest);
		ts = ky_clock_read(set->geo.clock);
		ts = KY_MAX(ts, load(&ctl->last_ts));
		extended = id >= KY_ID_EXTENDED || (ts - load(&ctl->window)) >> KY_TS_BITS;
		if ((from & mask) + KY_HEADER_EXTENDED + len > KY_BLOCK_LIMIT(mask + 1)) {
			begin = block_after(set, begin);
			if (!may_enter(set, slot, begin)) {
				head = load(&ctl->head);
				if (load(&ctl->reserve) != from)
					continue; /* a handler's record came in between */
				/*
				 * The block of a record that this one interrupted stays until this
				 * one has returned.
				 */
				if (again && head == from)
					return KY_WRITE_FULL;
				__atomic_fetch_add(&ctl->lost[KY_LOST_FULL], 1, __ATOMIC_RELAXED);
				return KY_WRITE_DONE;
			}
			give_up_oldest(set, slot, begin);
		}
		end = begin + len + (extended ? KY_HEADER_EXTENDED : KY_HEADER_COMPACT);
		if (swap_local(&ctl->reserve, &from, ky_head(end, (from >> 32) + 1)))
			break;
	}
	/*
	 * Records are published in the order of their reservation: those that come from now on are
	 * behind this one.
	 */
	if (extended)
		raise_local(&ctl->window, ky_window(ts));
	if ((uint32_t)begin != (uint32_t)from)
		note_block(set, slot, from, begin, ts);
	raise_local(&ctl->last_ts, ts);
	copy_record(ky_geometry_data(&set->geo, set->base, slot) + (begin & (ring_size - 1)), id,
		ts, extended, payload, len, pieces, n_pieces);
	if (load(&ctl->head) == from)
		publish(ctl);
	return KY_WRITE_DONE;
}

int ky_thread_record(struct ky_set *set, uint32_t id, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, bool again)
{
	bool claimed = false;
	int64_t slot = find_slot(set, &claimed);
	int r;

	if (slot < 0)
		return KY_WRITE_NO_RING;
	r = write_record(set, (uint32_t)slot, id, payload, len, pieces, n_pieces, again);
	/*
	 * Not in a handler that interrupted the record that claimed the ring: that record is still
	 * written.
	 */
	if (ky_unlikely(claimed && leaving))
		give_back(set, (uint32_t)slot);
	return r;
}
