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
 *   publish   Only the outermost record publishes, which is the one that began at the head: first
 *             itself, and then what handlers reserved meanwhile, until the head is at `reserve`. A
 *             plain store could undo what a handler published.
 *
 * SIGKILL at any point loses at most what was not published. The next owner starts behind the head
 * with a new block: all records of a block have the same owner.
 */

#include <linux/random.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/system-call.h"
#include "ring/freeze.h"
#include "ring/slots.h"
#include "ring/writer.h"

/*
 * Attempts, each of which fails only if a handler, or another thread, has succeeded meanwhile.
 * More of them fail only if somebody writes into the memory who has nothing to write there.
 */
#define MAX_TRIES 200

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

static void add_local(uint64_t *p, uint64_t n)
{
	uint64_t v = ky_ring_load(p);

	while (!swap_local(p, &v, v + n))
		;
}

static void raise_local(uint64_t *p, uint64_t to)
{
	uint64_t v = ky_ring_load(p);

	for (int i = 0; i < MAX_TRIES && v < to && !swap_local(p, &v, to); i++)
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

/* A slot, and the part of the set that its ring is in. NULL: none. */
struct place {
	const struct ky_ring_part *part;
	uint32_t slot;
	uint32_t claimed; /* just now */
};
#define NO_PLACE ((struct place){NULL, 0, 0})

static struct ky_ring_ctl *ctl_of(const struct ky_set *set, struct place p)
{
	return ky_geometry_ctl(&set->geo, p.part->ctl, p.slot);
}

static struct ky_block_entry *entry_of(const struct ky_set *set, struct place p, uint64_t pos)
{
	return ky_geometry_entry(&set->geo, p.part->table, p.slot, pos);
}

/*
 * This thread's ring in each set. The table is small, because a thread rarely records into many
 * sets at once. A ring that is not in the table is found by a walk over the owner words.
 */
#define KNOWN 4
static __thread KY_THREAD_TLS struct {
	const struct ky_set *set;
	uint64_t me;
	const struct ky_ring_part *part;
	uint32_t slot, turn;
} known[KNOWN];
static __thread KY_THREAD_TLS uint64_t self;
/* number of slots in all sets; higher in a forked child */
static __thread KY_THREAD_TLS uint64_t n_own;

/* the thread ends: it must itself release what it claims from now on */
static __thread KY_THREAD_TLS bool leaving;

static KY_WRITTEN_EARLY uint32_t process, n_threads, pid;
KY_WRITTEN_EARLY void (*ky_thread_claimed)(void);

/*
 * Chooses the process's number at random, because nothing else differs between all processes that
 * ever share a set: a pid is used again, stays the same across exec, and means another process in
 * each namespace. It is not taken from AT_RANDOM, which holds the C library's secrets.
 */
void ky_thread_set_process(void)
{
	uint64_t r;

	if (ky_raw_call(SYS_getrandom, &r, sizeof(r), GRND_NONBLOCK) != (long)sizeof(r))
		r = (ky_clock_read(KY_CLOCK_MONOTONIC) ^ (uint64_t)ky_process_number() << 40) *
		    0x9e3779b97f4a7c15u;
	process = r >> 32 ? (uint32_t)(r >> 32) : 1;
	n_threads = (uint32_t)r;
	pid = (uint32_t)ky_process_number();
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
	ret_owner->tid = (uint32_t)ky_thread_number();
	ky_thread_name(ret_owner->name);
	errno = saved;
}

/* Copies word by word: a reader of *to may be about to find that it has changed. */
static void copy_owner(struct ky_owner *to, const struct ky_owner *from)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(to->words); i++)
		__atomic_store_n(&to->words[i], from->words[i], __ATOMIC_RELAXED);
}

static void remember(const struct ky_set *set, struct place place)
{
	uint32_t at = set->turn % KNOWN;

	known[at].set = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (leaving)
		return; /* a handler, while the thread releases what it owns */
	known[at].me = self;
	known[at].turn = set->turn;
	known[at].part = place.part;
	known[at].slot = place.slot;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	known[at].set = set;
}

/* Returns the position of the head. */
static uint64_t published(const struct ky_ring_ctl *ctl)
{
	uint64_t oldest = load_oldest(ctl);

	return ky_head_pos(ky_ring_load(&ctl->head), oldest);
}

/*
 * Returns true if the block at `begin` may be entered. It may not before the consumer has read it.
 * In overwrite mode nobody has to read it, but what is not published is not overwritten: a
 * handler's records end before those of the record that it interrupted, which is still being
 * copied. Nor is anything overwritten while the set is frozen.
 */
static bool may_enter(const struct ky_set *set, struct place place, uint64_t begin)
{
	const struct ky_geometry *g = &set->geo;
	const struct ky_ring_ctl *ctl = ctl_of(set, place);
	uint64_t end = begin + g->block_size, kept;

	if (end <= g->data_stride)
		return true;
	if (ky_freeze_stops(g, set->base))
		return false;
	/* Acquire: pairs with the consumer's release of the block that is entered. */
	kept = g->overwrite ? published(ctl) & ~(uint64_t)(g->block_size - 1)
			    : __atomic_load_n(&set->consumed[place.slot], __ATOMIC_ACQUIRE);
	return end - g->data_stride <= kept;
}

/* Allows overwriting the block at `begin`, which is about to be entered. */
static void give_up_oldest(const struct ky_set *set, struct place place, uint64_t begin)
{
	const struct ky_geometry *g = &set->geo;
	uint64_t end = begin + g->block_size;

	if (end <= g->data_stride)
		return;
	raise_local(ky_geometry_oldest(g, place.part->oldest, place.slot), end - g->data_stride);
	raise_local(&ctl_of(set, place)->oldest, end - g->data_stride);
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
static __attribute__((noinline)) void note_block(
	const struct ky_set *set, struct place place, uint64_t from, uint64_t begin, uint64_t ts)
{
	struct ky_block_entry *left = entry_of(set, place, (uint32_t)from);
	struct ky_block_entry *entered = entry_of(set, place, begin);
	uint64_t near = ky_ring_load(&left->begin_count);
	uint64_t count = near + (uint64_t)(int32_t)((uint32_t)(from >> 32) - (uint32_t)near);

	__atomic_store_n(&left->used, from & (set->geo.block_size - 1), __ATOMIC_RELAXED);
	__atomic_store_n(&entered->begin_ts, ts, __ATOMIC_RELAXED);
	__atomic_store_n(&entered->begin_count, count, __ATOMIC_RELAXED);
	copy_owner(&entered->owner, &ctl_of(set, place)->owner);
}

static uint64_t block_after(const struct ky_set *set, uint64_t pos)
{
	return (pos | (set->geo.block_size - 1)) + 1;
}

/*
 * Returns true if a new owner could begin. If the head is in the middle of a block, it needs the
 * next one.
 */
static bool has_room(const struct ky_set *set, struct place place)
{
	uint64_t at = published(ctl_of(set, place));

	return !(at & (set->geo.block_size - 1)) || may_enter(set, place, block_after(set, at));
}

/*
 * Takes over a ring behind what the last owner published, in a new block. A killed owner may have
 * reserved more: that is void, even a long header that was to open the window.
 */
static void begin_ownership(struct ky_set *set, struct place place)
{
	struct ky_ring_ctl *ctl = ctl_of(set, place);
	uint64_t at = published(ctl), head = ky_ring_load(&ctl->head), next = at;
	struct ky_owner owner;

	introduce(set, &owner);
	copy_owner(&ctl->owner, &owner);
	__atomic_store_n(&ctl->window, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ctl->nested_ts, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ctl->moving, 0, __ATOMIC_RELAXED);
	if (at & (set->geo.block_size - 1)) {
		next = block_after(set, at);
		give_up_oldest(set, place, next);
		note_block(set, place, head, next, ky_ring_load(&ctl->last_ts));
	} else {
		copy_owner(&entry_of(set, place, at)->owner, &owner);
	}
	head = ky_head(next, head >> 32);
	__atomic_store_n(&ctl->reserve, head, __ATOMIC_RELAXED);
	/* Release: pairs with the reader's acquire of head. */
	__atomic_store_n(&ctl->head, head, __ATOMIC_RELEASE);
}

/* Maps the slot's part if it is not mapped. */
static struct place place_of(struct ky_set *set, uint32_t slot)
{
	int saved = errno;
	struct place p = {ky_parts_extend(&set->parts, &set->geo, slot, -1), slot, 0};

	errno = saved;
	return p;
}

/*
 * Claims a slot. Acquire: pairs with the previous owner's release. A handler in between claims
 * another slot.
 */
static bool take_slot(const struct ky_set *set, uint32_t slot, uint64_t word, uint64_t me)
{
	return __atomic_compare_exchange_n(ky_geometry_slot(&set->geo, set->base, slot), &word,
		me | KY_SLOT_CLAIMING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/*
 * Claims a slot that nobody ever had, if there is one. As many attempts as there are slots: each
 * fails because another thread has claimed one.
 */
static struct place claim_unused(struct ky_set *set, uint64_t me)
{
	struct ky_set_slots *shared = ky_slots_shared(set->base);
	uint64_t i = ky_ring_load(&shared->n_claimed);
	struct place place;

	for (uint32_t tries = 0; tries < set->geo.n_rings; tries++) {
		if (i >= set->geo.n_rings)
			return NO_PLACE;
		place = place_of(set, (uint32_t)i);
		if (!place.part)
			return NO_PLACE;
		if (!__atomic_compare_exchange_n(&shared->n_claimed, &i, i + 1, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		if (!take_slot(set, place.slot, 0, me)) {
			i++;
			continue;
		}
		if (i >= __atomic_load_n(&set->n_prepared, __ATOMIC_RELAXED))
			__atomic_fetch_add(&shared->n_unprepared, 1, __ATOMIC_RELAXED);
		return place;
	}
	return NO_PLACE;
}

/*
 * Finds the slot that was freed first, among those that are mapped and in which a thread could
 * begin now. Returns NO_PLACE if there is none.
 */
static struct place find_released(const struct ky_set *set, uint64_t *ret_word)
{
	uint32_t n = ky_slots_claimed(&set->geo, set->base);
	struct place found = NO_PLACE;
	uint64_t best = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		struct place place = {ky_parts_find(&set->parts, i), i, 0};
		uint64_t word = ky_slot_word(&set->geo, set->base, i);

		if (!place.part || word & KY_SLOT_OWNED || word >= best || !has_room(set, place))
			continue;
		best = word;
		found = place;
	}
	*ret_word = best;
	return found;
}

/* Maps the next part, if it has slots that were claimed. Returns false if there is none. */
static bool map_claimed(struct ky_set *set)
{
	uint32_t n = ky_slots_claimed(&set->geo, set->base), i = 0;

	while (i < n && ky_parts_find(&set->parts, i))
		i = i ? 2 * i : KY_PART_FIRST;
	return i < n && place_of(set, i).part;
}

/*
 * Searches only if a slot was freed since the last search found none: so when many threads start,
 * not each of them examines all slots.
 */
static struct place claim_released(struct ky_set *set, uint64_t me)
{
	uint64_t n_released = ky_ring_load(&ky_slots_shared(set->base)->n_released), word;
	struct place place;

	if (n_released == ky_ring_load(&set->n_exhausted))
		return NO_PLACE;
	for (int i = 0; i < MAX_TRIES; i++) {
		do
			place = find_released(set, &word);
		while (!place.part && map_claimed(set));
		if (!place.part)
			__atomic_store_n(&set->n_exhausted, n_released, __ATOMIC_RELAXED);
		if (!place.part || take_slot(set, place.slot, word, me))
			return place;
	}
	return NO_PLACE;
}

/*
 * Claims a free slot. Unused slots of the pool come first: so the records of ended threads stay as
 * long as possible.
 */
static struct place claim_slot(struct ky_set *set, uint64_t me)
{
	struct place place = NO_PLACE;

	if (ky_slots_claimed(&set->geo, set->base) < set->pool)
		place = claim_unused(set, me);
	if (!place.part)
		place = claim_released(set, me);
	if (!place.part)
		place = claim_unused(set, me);
	if (!place.part)
		return place;
	begin_ownership(set, place);
	__atomic_store_n(ky_geometry_slot(&set->geo, set->base, place.slot), me, __ATOMIC_RELEASE);
	__atomic_fetch_add(&set->n_owned, 1, __ATOMIC_RELAXED);
	add_local(&n_own, 1);
	return place;
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

/* Finds a ring that this thread already owns, or a free one. NO_PLACE: there is none. */
static __attribute__((noinline)) struct place find_place(struct ky_set *set, uint64_t me)
{
	int64_t own = find_own(set, me);
	struct place place = own < 0 ? claim_slot(set, me) : place_of(set, (uint32_t)own);

	if (!place.part)
		return place;
	place.claimed = own < 0;
	remember(set, place);
	__atomic_store_n(&set->used[place.slot], 1, __ATOMIC_RELAXED);
	if (place.claimed && ky_thread_claimed && !leaving)
		ky_thread_claimed();
	return place;
}

void ky_thread_leave(void)
{
	leaving = true;
}

void ky_thread_release(struct ky_set *set)
{
	uint32_t at = set->turn % KNOWN;
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
 * Publishes what handlers reserved while the outermost record was written: all of it is copied.
 * A reader could see the new clock with the old head, and would take it for the clock of that
 * head. So `moving` stands around both.
 */
static __attribute__((noinline)) void publish_nested(struct ky_ring_ctl *ctl)
{
	uint64_t head, reserve;

	__atomic_store_n(&ctl->moving, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < MAX_TRIES && (head = ky_ring_load(&ctl->head)) !=
						 (reserve = ky_ring_load(&ctl->reserve));
		i++) {
		raise_local(&ctl->last_ts, ky_ring_load(&ctl->nested_ts));
		swap_local(&ctl->head, &head, reserve);
	}
	__atomic_store_n(&ctl->moving, 0, __ATOMIC_RELEASE);
}

/* Publishes the outermost record, which ends at `own`, and then those of handlers. */
static inline void publish_record(struct ky_ring_ctl *ctl, uint64_t head, uint64_t own)
{
	/* Releases the record: pairs with the reader's acquire of head. */
	swap_local(&ctl->head, &head, own);
	if (ky_unlikely(ky_ring_load(&ctl->reserve) != own))
		publish_nested(ctl);
}

/* Writes the record into this ring, which this thread owns. */
static inline int write_record(struct ky_set *set, struct place place, uint32_t id,
	const void *payload, uint32_t len, const struct kymo_piece *pieces, size_t n_pieces,
	bool again)
{
	struct ky_ring_ctl *ctl = ctl_of(set, place);
	uint64_t mask = set->geo.block_size - 1, ring_size = set->geo.data_stride;
	uint64_t oldest, from, head, begin, end, ts, reserved, *clock;
	bool extended;

	for (int i = 0;; i++) {
		if (ky_unlikely(i == MAX_TRIES)) {
			__atomic_fetch_add(&ctl->lost[KY_LOST_STUCK], 1, __ATOMIC_RELAXED);
			return KY_WRITE_DONE;
		}
		oldest = load_oldest(ctl);
		from = ky_ring_load(&ctl->reserve);
		/*
		 * A record that this one interrupted is published first. last_ts, which belongs to
		 * the head, must not be after it.
		 */
		clock = ky_ring_load(&ctl->head) == from ? &ctl->last_ts : &ctl->nested_ts;
		begin = ky_head_pos(from, oldest);
		ts = ky_clock_read(set->geo.clock);
		ts = KY_MAX(ts, ky_ring_load(clock));
		extended = id >= KY_ID_EXTENDED || (ts - ky_ring_load(&ctl->window)) >> KY_TS_BITS;
		if ((from & mask) + KY_HEADER_EXTENDED + len > KY_BLOCK_LIMIT(mask + 1)) {
			begin = block_after(set, begin);
			if (!may_enter(set, place, begin)) {
				head = ky_ring_load(&ctl->head);
				if (ky_ring_load(&ctl->reserve) != from)
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
			give_up_oldest(set, place, begin);
		}
		end = begin + len + (extended ? KY_HEADER_EXTENDED : KY_HEADER_COMPACT);
		reserved = ky_head(end, (from >> 32) + 1);
		if (swap_local(&ctl->reserve, &from, reserved))
			break;
	}
	/*
	 * Records are published in the order of their reservation: those that come from now on are
	 * behind this one.
	 */
	if (extended)
		raise_local(&ctl->window, ky_window(ts));
	if ((uint32_t)begin != (uint32_t)from)
		note_block(set, place, from, begin, ts);
	raise_local(clock, ts);
	copy_record(ky_geometry_data(&set->geo, place.part->data, place.slot) +
			    (begin & (ring_size - 1)),
		id, ts, extended, payload, len, pieces, n_pieces);
	if (clock == &ctl->last_ts)
		publish_record(ctl, from, reserved);
	return KY_WRITE_DONE;
}

int ky_thread_record(struct ky_set *set, uint32_t id, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, bool again)
{
	uint32_t at = set->turn % KNOWN;
	uint64_t me = whoami();
	struct place place;
	int r;

	if (ky_likely(known[at].set == set && known[at].turn == set->turn && known[at].me == me))
		place = (struct place){known[at].part, known[at].slot, 0};
	else
		place = find_place(set, me);
	if (ky_unlikely(!place.part))
		return KY_WRITE_NO_RING;
	r = write_record(set, place, id, payload, len, pieces, n_pieces, again);
	/*
	 * Not in a handler that interrupted the record that claimed the ring: that record is still
	 * written.
	 */
	if (ky_unlikely(place.claimed && leaving))
		give_back(set, place.slot);
	return r;
}
