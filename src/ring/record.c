/* SPDX-License-Identifier: MIT */
/*
 * ky_record: writes one event into the rings of all sessions that want it. In the common case this
 * is one call of the hook's writer per hook; everything else is in record_slow.
 */
#include "base/clock.h"
#include "ring/asm-offsets.h"
#include "ring/freeze.h"
#include "ring/wait.h"
#include "ring/writer.h"

/*
 * Attempts before an event is discarded: enough for any storm of signals, few enough for a
 * debugger.
 */
#define MAX_TRIES 200

#define ASSERT_OFFSET(type, member, offset)                                                        \
	static_assert(offsetof(struct type, member) == (offset), "assembly: " #type "." #member)
#ifdef __LP64__
ASSERT_OFFSET(ky_hook, active, KY_HOOK_ACTIVE);
ASSERT_OFFSET(ky_hook, id, KY_HOOK_ID);
ASSERT_OFFSET(ky_hook, n_rings, KY_HOOK_N_RINGS);
ASSERT_OFFSET(ky_hook, n_short, KY_HOOK_N_SHORT);
ASSERT_OFFSET(ky_hook, block_mask, KY_HOOK_BLOCK_MASK);
ASSERT_OFFSET(ky_hook, block_limit, KY_HOOK_BLOCK_LIMIT);
ASSERT_OFFSET(ky_hook, ring_mask, KY_HOOK_RING_MASK);
ASSERT_OFFSET(ky_hook, ctl, KY_HOOK_CTL);
ASSERT_OFFSET(ky_hook, data, KY_HOOK_DATA);
ASSERT_OFFSET(ky_hook, ring_size, KY_HOOK_RING_SIZE);
ASSERT_OFFSET(ky_hook, n_special, KY_HOOK_N_SPECIAL);
ASSERT_OFFSET(ky_stores, ctl, KY_STORES_CTL);
ASSERT_OFFSET(ky_stores, head, KY_STORES_HEAD);
ASSERT_OFFSET(ky_stores, other, KY_STORES_OTHER);
ASSERT_OFFSET(ky_stores, other_value, KY_STORES_OTHER_VALUE);
ASSERT_OFFSET(ky_stores, n, KY_STORES_N);
ASSERT_OFFSET(ky_stores, store[0].at, KY_STORES_AT);
ASSERT_OFFSET(ky_stores, store[0].value, KY_STORES_VALUE);
ASSERT_OFFSET(ky_stores, store[1].at, KY_STORES_AT + 16);
ASSERT_OFFSET(kymo_piece, ptr, KY_PIECE_PTR);
ASSERT_OFFSET(kymo_piece, len, KY_PIECE_LEN);
ASSERT_OFFSET(kymo_piece, flags, KY_PIECE_FLAGS);
static_assert(sizeof(struct kymo_piece) == KY_PIECE_SIZE, "assembly: piece");
static_assert(offsetof(struct ky_hook, write) == 64, "short writers need one cache line");
#endif
static_assert(KY_CTL_SIZE == 1 << KY_ASM_CTL_SHIFT, "assembly: ctl");
static_assert(KY_ASM_HEAD == KY_CTL_HEAD && KY_ASM_WINDOW == KY_CTL_WINDOW &&
		      KY_ASM_LAST_TS == KY_CTL_LAST_TS,
	"assembly: ctl");
static_assert(KY_ASM_ID_BITS == KY_ID_BITS && KY_ASM_TS_BITS == KY_TS_BITS, "assembly: header");
static_assert(KY_ASM_EXTENDED_ID == KY_ID_EXTENDED, "assembly: header");
static_assert(KY_ASM_COMPACT == KY_HEADER_COMPACT && KY_ASM_EXTENDED == KY_HEADER_EXTENDED,
	"assembly: header");
static_assert(KY_ASM_RESTART == KY_WRITE_RESTART && KY_ASM_NO_RING == KY_WRITE_NO_RING &&
		      KY_ASM_FULL == KY_WRITE_FULL && KY_ASM_DONE == KY_WRITE_DONE &&
		      KY_ASM_LONG == KY_WRITE_LONG,
	"assembly: results");
static_assert(KYMO_PIECE_SCRATCH == 1 && KYMO_PIECE_TEXT == 2, "assembly: pieces");

KY_WRITTEN_EARLY ptrdiff_t ky_rseq_offset;
__thread uint32_t ky_freeze_exempt KY_THREAD_TLS;

#if KY_HAVE_RSEQ
/*
 * The C library's (glibc since 2.35). NULL with other libraries, and if an older glibc is loaded.
 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#if defined(__x86_64__)
ky_flat_special_fn ky_flat_special = ky_rseq_flat_special;
ky_word_special_fn ky_word_special = ky_rseq_word_special;
#endif

void ky_writer_init(void)
{
	if (&__rseq_offset)
		ky_rseq_offset = __rseq_offset;
#if defined(__x86_64__)
	if (ky_rseq_offset == KY_RSEQ_KNOWN) {
		ky_flat_special = ky_rseq_flat_special_known;
		ky_word_special = ky_rseq_word_special_known;
	}
#endif
}

bool ky_writer_has_rseq(void)
{
	const char *area = (const char *)__builtin_thread_pointer() + ky_rseq_offset;
	int32_t cpu;

	if (!&__rseq_size || !&__rseq_offset || !__rseq_size)
		return false;
	memcpy(&cpu, area + KY_RSEQ_CPU_ID, sizeof(cpu));
	return cpu >= 0;
}

static uint32_t current_cpu(void)
{
	const char *area = (const char *)__builtin_thread_pointer() + ky_rseq_offset;

	return __atomic_load_n(
		(const uint32_t *)(const void *)(area + KY_RSEQ_CPU_ID), __ATOMIC_RELAXED);
}
#else
void ky_writer_init(void)
{
}

bool ky_writer_has_rseq(void)
{
	return false;
}
#endif

static ky_write_fn writer_for(const struct ky_set *set)
{
#if KY_HAVE_RSEQ
	if (set->geo.mode == KY_SET_PER_CPU)
		return set->geo.clock == KY_CLOCK_MONOTONIC ? ky_rseq_record_ts
							    : ky_rseq_record_counter;
#endif
	(void)set;
	return NULL;
}

static bool has_short_writers(const struct ky_hook *hook)
{
#if defined(__x86_64__) && defined(__LP64__)
	return hook->write == ky_rseq_record_counter && hook->id < KY_ID_EXTENDED;
#else
	(void)hook;
	return false;
#endif
}

void ky_hook_init(struct ky_hook *hook, struct ky_set *set, uint32_t id)
{
	__atomic_store_n(&hook->id, id, __ATOMIC_RELAXED);
	hook->block_mask = set->geo.block_size - 1;
	/* A long header takes more room, and the limit must hold for both headers. */
	hook->block_limit = KY_BLOCK_LIMIT(set->geo.block_size) - KY_HEADER_EXTENDED;
	hook->clock = (uint16_t)set->geo.clock;
	hook->ring_mask = (uint32_t)ky_geometry_ring_mask(&set->geo);
	hook->ctl = ky_geometry_ctl(&set->geo, set->base, 0);
	hook->data = ky_geometry_data(&set->geo, set->base, 0);
	hook->ring_size = set->geo.data_stride;
	hook->write = writer_for(set);
	/* Release: enter_set sees the identifier when it sees the set. */
	__atomic_store_n(&hook->set, set, __ATOMIC_RELEASE);
}

void ky_hook_switch(struct ky_hook *hook, bool on)
{
	uint32_t n = on ? hook->set->geo.n_rings : 0, n_short = has_short_writers(hook) ? n : 0;

	/*
	 * `active` is not set here without rings: a writer that finds no ring checks `active` to
	 * see whether that is a loss. Release: any thread that sees the hook on also sees its other
	 * members. Sequentially consistent: for enter_set.
	 */
	if (!on)
		__atomic_store_n(&hook->active, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&hook->n_rings, n, __ATOMIC_RELEASE);
	__atomic_store_n(&hook->n_short, hook->special ? 0 : n_short, __ATOMIC_RELEASE);
	__atomic_store_n(
		&hook->n_special, hook->special && !hook->heir ? n_short : 0, __ATOMIC_RELEASE);
	if (on)
		__atomic_store_n(&hook->active, 1, __ATOMIC_SEQ_CST);
}

static void leave_set(struct ky_set *set)
{
	__atomic_fetch_sub(&set->users, 1, __ATOMIC_RELEASE);
}

/*
 * Returns true while the hook still records into this set. An active hook without rings only leads
 * to its heir.
 */
static bool leads_to(const struct ky_hook *hook, const struct ky_set *set)
{
	/* Sequentially consistent: see enter_set. */
	return __atomic_load_n(&hook->active, __ATOMIC_SEQ_CST) &&
	       __atomic_load_n(&hook->n_rings, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&hook->set, __ATOMIC_RELAXED) == set;
}

/*
 * Enters a set. Every access to a set outside a restartable sequence needs this. Returns false if
 * the hook became inactive. Pairs with the listener, which clears `active`, then (sequentially
 * consistent) reads `users`: while a thread is inside, the set's memory is not unmapped and the
 * hook is not used for another set.
 */
static bool enter_set(struct ky_hook *hook, struct ky_set **ret_set, uint32_t *ret_id)
{
	/* Acquire: pairs with ky_hook_init. */
	struct ky_set *set = __atomic_load_n(&hook->set, __ATOMIC_ACQUIRE);

	/*
	 * A hook that was switched off and on meanwhile may have another set: then this one is not
	 * entered.
	 */
	if (!set)
		return false;
	__atomic_fetch_add(&set->users, 1, __ATOMIC_SEQ_CST);
	if (!leads_to(hook, set)) {
		leave_set(set);
		return false;
	}
	*ret_set = set;
	/* Not earlier: the hook and the set might have been used again in between. */
	*ret_id = __atomic_load_n(&hook->id, __ATOMIC_RELAXED);
	return true;
}

#if KY_HAVE_RSEQ
/*
 * Notes that this application writes into this CPU's ring, so that the listener may populate its
 * memory. NULL: after a fork.
 */
static void note_use(struct ky_set *set)
{
	uint32_t cpu = current_cpu();

	if (set && cpu < set->geo.n_rings && !__atomic_load_n(&set->used[cpu], __ATOMIC_RELAXED))
		__atomic_store_n(&set->used[cpu], 1, __ATOMIC_RELAXED);
}

/*
 * Allows overwriting what is before position `to`. Returns false if the head or the control
 * block's word has changed. That word is stored last: if the sequence ends between the two, the
 * block is given up again, and a reader has seen nothing.
 */
static bool give_up_oldest(struct ky_hook *hook, struct ky_set *set, uint32_t cpu, uint64_t head,
	uint64_t from, uint64_t to)
{
	struct ky_ring_ctl *ctl = ky_geometry_ctl(&set->geo, set->base, cpu);
	const struct ky_stores stores = {.ctl = ctl,
		.head = head,
		.other = &ctl->oldest,
		.other_value = from,
		.n = 2,
		.store = {{ky_geometry_oldest(&set->geo, set->base, cpu), to}, {&ctl->oldest, to}}};

	if (ky_rseq_store(hook, &stores) != KY_WRITE_DONE)
		return false;
	/*
	 * Pairs with ky_snapshot_ring's acquire: readers see it before they see anything
	 * overwritten.
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

/*
 * Returns true if the daemon, as the block's word `claimed` says, takes the memory of a block that
 * is not the current one.
 */
static bool is_taken(const struct ky_block_entry *block, uint64_t claimed)
{
	return claimed == __atomic_load_n(&block->next, __ATOMIC_RELAXED) + 1;
}

/*
 * Returns true if the consumer is through with block i, which is not the current one, and the
 * daemon does not take its memory. kept: the consumer's position.
 */
static bool is_free(const struct ky_block_entry *table, uint64_t i, uint64_t kept)
{
	uint64_t claimed = __atomic_load_n(&table[i].claimed, __ATOMIC_RELAXED);

	return __atomic_load_n(&table[i].next, __ATOMIC_RELAXED) <= kept &&
	       !is_taken(&table[i], claimed);
}

/*
 * Returns the position of the block that a writer enters after the one at `start` in a spreading
 * ring; 0: no block is free. A writer that is at the end of the home blocks, or beyond, returns to
 * the ring's beginning as soon as it can. Else it takes the next block that is free and that this
 * application may use.
 */
static uint64_t next_spreading(
	const struct ky_set *set, struct ky_block_entry *table, uint64_t start, uint64_t kept)
{
	const struct ky_geometry *g = &set->geo;
	uint64_t size = g->block_size, n = g->n_blocks, at = start / size % n;
	uint64_t n_entered = n - __atomic_load_n(&set->n_shunned, __ATOMIC_RELAXED);

	if (at + 1 >= g->n_home && is_free(table, 0, kept))
		return start + (n - at) * size;
	for (uint64_t i = 1, to; i < n; i++) {
		to = (at + i) % n;
		if (to < n_entered && is_free(table, to, kept))
			return start + i * size;
	}
	return 0;
}

/* Likewise in overwrite mode: the blocks that are used are entered in a circle. */
static uint64_t next_overwriting(
	const struct ky_set *set, const struct ky_ring_ctl *ctl, uint64_t start)
{
	const struct ky_geometry *g = &set->geo;
	uint64_t size = g->block_size, n = g->n_blocks, at = start / size % n, n_used;

	n_used = KY_MAX(__atomic_load_n(&ctl->n_used, __ATOMIC_RELAXED), (uint64_t)g->n_home);
	n_used = KY_MIN(n_used, n - __atomic_load_n(&set->n_shunned, __ATOMIC_RELAXED));
	return start + (at + 1 < n_used ? 1 : n - at) * size;
}

/*
 * Returns the position of the block that a writer enters after the one at `start`; 0: the ring is
 * full. kept: the consumer's position.
 */
static uint64_t next_block(struct ky_set *set, uint32_t cpu, uint64_t start, uint64_t kept)
{
	const struct ky_geometry *g = &set->geo;
	struct ky_ring_ctl *ctl = ky_geometry_ctl(g, set->base, cpu);
	uint64_t next = start + g->block_size;

	if (g->overwrite)
		return next_overwriting(set, ctl, start);
	if (!ky_geometry_spreads(g))
		return next + g->block_size <= kept + g->data_stride ? next : 0;
	if (__atomic_load_n(&ctl->full_at, __ATOMIC_RELAXED) == kept + 1)
		return 0;
	next = next_spreading(set, ky_geometry_entry(g, set->base, cpu, 0), start, kept);
	return next && next + g->block_size - kept <= ky_geometry_reach(g) ? next : 0;
}

/*
 * Returns the position before which everything may be overwritten once the block at `next` is
 * entered: the end of the block's earlier use, or 0 if it has none.
 */
static uint64_t end_of_earlier_use(
	const struct ky_geometry *g, const struct ky_block_entry *enter, uint64_t next)
{
	uint64_t end = next + g->block_size;

	if (ky_geometry_spreads(g))
		return __atomic_load_n(&enter->next, __ATOMIC_RELAXED);
	return end > g->data_stride ? end - g->data_stride : 0;
}

/*
 * Handles a payload of this length that does not fit the block. Changes to the next block if the
 * consumer has read it or need not read it. Otherwise returns KY_WRITE_FULL: the record is lost.
 */
static int change_block(struct ky_hook *hook, struct ky_set *set, uint32_t cpu, uint32_t len)
{
	const struct ky_geometry *g = &set->geo;
	struct ky_ring_ctl *ctl = ky_geometry_ctl(g, set->base, cpu);
	uint64_t head = __atomic_load_n(&ctl->head, __ATOMIC_ACQUIRE);
	uint32_t used = (uint32_t)head & (g->block_size - 1);
	struct ky_block_entry *left = ky_geometry_entry(g, set->base, cpu, (uint32_t)head);
	/*
	 * Acquire: pairs with the consumer's release after it has copied the block that will be
	 * overwritten.
	 */
	uint64_t kept = __atomic_load_n(
		g->overwrite ? &ctl->oldest : &set->consumed[cpu], __ATOMIC_ACQUIRE);
	uint64_t next = next_block(set, cpu, ky_head_pos(head, kept) - used, kept);
	struct ky_block_entry *enter = ky_geometry_entry(g, set->base, cpu, next);
	uint64_t claimed = __atomic_load_n(&enter->claimed, __ATOMIC_RELAXED);
	uint64_t given_up = __atomic_load_n(&ctl->oldest, __ATOMIC_RELAXED);
	uint64_t oldest = end_of_earlier_use(g, enter, next);
	uint64_t begin_count = ky_head_count(
		head, __atomic_load_n(&left->begin_count, __ATOMIC_RELAXED));
	const struct ky_stores stores = {
		.ctl = ctl,
		.head = head,
		/* The daemon may take the block's memory while this thread gets no processor. */
		.other = &enter->claimed,
		.other_value = claimed,
		.n = 6,
		/* The clock belongs to this head if the sequence still finds the same head. */
		.store = {{&left->used, used}, {&left->next, next},
			{&enter->begin_ts, __atomic_load_n(&ctl->last_ts, __ATOMIC_RELAXED)},
			{&enter->begin_count, begin_count},
			{&enter->number, __atomic_load_n(&left->number, __ATOMIC_RELAXED) + 1},
			{&ctl->head, ky_head(next, begin_count)}},
	};

	/*
	 * Another thread may have changed the block since the writer looked, or this thread now
	 * runs on another CPU: then try again. The consumer's position must not be compared with a
	 * head that it has passed, either.
	 */
	if (used + len <= ky_geometry_max_payload(g) ||
		__atomic_load_n(&ctl->head, __ATOMIC_RELAXED) != head)
		return KY_WRITE_RESTART;
	if (!next) {
		__atomic_store_n(&ctl->full_at, kept + 1, __ATOMIC_RELAXED);
		return KY_WRITE_FULL;
	}
	if (ky_geometry_spreads(g) && is_taken(enter, claimed))
		return KY_WRITE_RESTART;
	/* Blocks that became free together are entered in any order. */
	if (oldest > given_up) {
		if (ky_freeze_stops(g, set->base))
			return KY_WRITE_FULL;
		if (!give_up_oldest(hook, set, cpu, head, given_up, oldest))
			return KY_WRITE_RESTART;
	}
	note_use(set);
	/* Does nothing if the hook records into another set meanwhile. */
	ky_rseq_store(hook, &stores);
	return KY_WRITE_RESTART;
}

/* Handles result r of a per-CPU writer. Called inside enter_set. */
static int resolve_result(struct ky_hook *hook, struct ky_set *set, uint32_t len, int r)
{
	uint32_t cpu = current_cpu();

	if (r == KY_WRITE_LONG) {
		note_use(set);
		return KY_WRITE_DONE;
	}
	if (cpu >= set->geo.n_rings)
		return KY_WRITE_NO_RING;
	return r == KY_WRITE_FULL ? change_block(hook, set, cpu, len) : KY_WRITE_RESTART;
}
#else
#define current_cpu()			  0u
#define resolve_result(hook, set, len, r) (r)
#define note_use(set)			  ((void)(set))
#endif

/* Counts a lost event in the ring that it was meant for. Called inside enter_set. */
static void count_lost(struct ky_set *set, enum ky_lost why)
{
	bool per_cpu = set->geo.mode == KY_SET_PER_CPU;
	uint32_t i = per_cpu ? current_cpu() : 0;
	struct ky_ring_ctl *ctl;

	ctl = ky_geometry_ctl(&set->geo, per_cpu ? set->base : set->parts.part[0].ctl,
		i < set->geo.n_rings ? i : 0);
	__atomic_fetch_add(&ctl->lost[why], 1, __ATOMIC_RELAXED);
}

/* Waits a moment for room, within the set's limit, while the hook is on. */
static enum ky_waited wait_for_room(
	const struct ky_hook *hook, struct ky_set *set, struct ky_ring_wait *wait)
{
	enum ky_waited waited;

	if (!leads_to(hook, set))
		return KY_WAIT_OVER;
	waited = ky_wait_nap(wait, __atomic_load_n(&set->wait_ns, __ATOMIC_RELAXED));
	if (waited == KY_WAIT_OVER && __atomic_load_n(&set->wait_once, __ATOMIC_RELAXED))
		__atomic_store_n(&set->wait_ns, 0, __ATOMIC_RELAXED);
	return waited;
}

/* Prepares what the writer lacks, and lets it try again. Called inside enter_set. */
static int write_again(struct ky_hook *hook, struct ky_set *set, ky_write_fn write,
	const void *payload, uint32_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	int r = KY_WRITE_RESTART;
	uint64_t ts;

	for (int tries = 0; r == KY_WRITE_RESTART && tries < MAX_TRIES; tries++) {
		/* Switched off meanwhile: then the writer finds no ring. */
		if (!leads_to(hook, set))
			return KY_WRITE_OFF;
		ts = ky_clock_read(set->geo.clock);
		r = write(hook, payload, len, pieces, n_pieces, ts);
		if (r != KY_WRITE_DONE && r != KY_WRITE_RESTART)
			r = resolve_result(hook, set, len, r);
	}
	return r;
}

/* Handles a writer that did not write at once: tries again, waits, or counts the event as lost. */
static __attribute__((cold, noinline)) void record_slow(struct ky_hook *hook, ky_write_fn write,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	struct ky_ring_wait wait = {0};
	enum ky_waited waited;
	struct ky_set *set;
	uint32_t id_unused;
	int r;

	if (!enter_set(hook, &set, &id_unused))
		return;
	if (len > ky_geometry_max_payload(&set->geo)) {
		count_lost(set, KY_LOST_TOO_BIG);
		leave_set(set);
		return;
	}
	do {
		r = write_again(hook, set, write, payload, (uint32_t)len, pieces, n_pieces);
		waited = r == KY_WRITE_FULL ? wait_for_room(hook, set, &wait) : KY_WAIT_OVER;
	} while (waited == KY_WAIT_AGAIN);
	if (waited == KY_WAIT_FORKED)
		return;
	/*
	 * An event that meets a hook that is off is no loss, unless it came before and has waited.
	 */
	if (r == KY_WRITE_FULL || (r == KY_WRITE_OFF && wait.nap_ns))
		count_lost(set, KY_LOST_FULL);
	else if (r != KY_WRITE_DONE && r != KY_WRITE_OFF)
		count_lost(set, KY_LOST_STUCK);
	leave_set(set);
}

/*
 * Waits for room in a thread's full ring, if that is allowed. Returns false if the set must not be
 * accessed any more. Called inside enter_set.
 */
static __attribute__((cold, noinline)) bool wait_thread(struct ky_hook *hook, struct ky_set *set,
	uint32_t id, const void *payload, uint32_t len, const struct kymo_piece *pieces,
	size_t n_pieces)
{
	struct ky_ring_wait wait = {0};
	enum ky_waited waited;

	do {
		waited = wait_for_room(hook, set, &wait);
		if (waited == KY_WAIT_FORKED)
			return false;
		/* The last try counts the event, if it is lost. */
	} while (ky_thread_record(set, id, payload, len, pieces, n_pieces,
			 waited == KY_WAIT_AGAIN) == KY_WRITE_FULL);
	return true;
}

/* Per-thread writers always run inside enter_set: nothing else keeps the set while they write. */
static void record_thread(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	struct ky_set *set;
	uint64_t wait_ns;
	bool may_wait;
	uint32_t id;
	int r;

	if (!enter_set(hook, &set, &id))
		return;
	wait_ns = __atomic_load_n(&set->wait_ns, __ATOMIC_RELAXED);
	may_wait = ky_unlikely(wait_ns) && ky_wait_allowed(wait_ns);
	if (len > ky_geometry_max_payload(&set->geo)) {
		count_lost(set, KY_LOST_TOO_BIG);
		leave_set(set);
		return;
	}
	r = ky_thread_record(set, id, payload, (uint32_t)len, pieces, n_pieces, may_wait);
	if (ky_unlikely(r == KY_WRITE_NO_RING))
		count_lost(set, KY_LOST_NO_SLOT);
	if (ky_likely(r != KY_WRITE_FULL) ||
		wait_thread(hook, set, id, payload, (uint32_t)len, pieces, n_pieces))
		leave_set(set);
}

__attribute__((cold)) void ky_record_lost(struct ky_hook *hook, enum ky_lost why)
{
	uint32_t id_unused;
	struct ky_set *set;

	if (!enter_set(hook, &set, &id_unused))
		return;
	count_lost(set, why);
	leave_set(set);
}

/*
 * Records with this writer of the hook. NULL: the rings are threads' rings, or a signal handler has
 * forked, which has zeroed the hook.
 */
static inline __attribute__((always_inline)) void record_by(ky_write_fn write, struct ky_hook *hook,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces,
	uint64_t ts)
{
	int r;

	if (ky_unlikely(!write)) {
		record_thread(hook, payload, len, pieces, n_pieces);
		return;
	}
	if (ky_likely(len <= KY_BLOCK_MAX / 2)) {
		r = write(hook, payload, (uint32_t)len, pieces, n_pieces, ts);
		if (ky_unlikely(r == KY_WRITE_LONG))
			note_use(hook->set);
		if (ky_likely(r == KY_WRITE_DONE || r == KY_WRITE_LONG))
			return;
	}
	record_slow(hook, write, payload, len, pieces, n_pieces);
}

void ky_record_hook(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	uint64_t ts = 0;

	if (ky_unlikely(hook->clock == KY_CLOCK_MONOTONIC))
		ts = ky_clock_read(KY_CLOCK_MONOTONIC);
	record_by(hook->write, hook, payload, len, pieces, n_pieces, ts);
}

void ky_record_hook_at(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts)
{
#if KY_HAVE_RSEQ
	record_by(hook->write ? ky_rseq_record_ts : NULL, hook, payload, len, pieces, n_pieces, ts);
#else
	(void)ts;
	record_by(NULL, hook, payload, len, pieces, n_pieces, 0);
#endif
}

static inline __attribute__((always_inline)) void into_hook(struct ky_hook *hook,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	if (ky_unlikely(hook->special)) {
		hook->special(hook, payload, len, pieces, n_pieces);
		return;
	}
	len = ky_pieces_recorded(pieces, &n_pieces, len);
	ky_record_hook(hook, payload, len, pieces, n_pieces);
}

void ky_record_into(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	into_hook(hook, payload, len, pieces, n_pieces);
}

void ky_record(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release that links a hook. */
	for (; hook; hook = __atomic_load_n(&hook->next, __ATOMIC_ACQUIRE))
		if (ky_hook_is_active(hook))
			into_hook(hook, payload, len, pieces, n_pieces);
}

void ky_record_event(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	ky_record(__atomic_load_n((struct ky_hook **)&event->state->hooks, __ATOMIC_ACQUIRE),
		payload, len, pieces, n_pieces);
}

void ky_record_flat(const struct kymo_event *event, const void *payload, void *hook, size_t len)
{
	(void)hook; /* the event's only hook, when the event read it */
	ky_record_event(event, payload, len, NULL, 0);
}

void ky_record_word(const struct kymo_event *event, uint64_t value, void *hook, size_t len)
{
	uint64_t payload[1 + KYMO_SCRATCH_SLACK / sizeof(uint64_t)] = {value};

	(void)hook;
	ky_record_event(event, payload, len, NULL, 0);
}

/* The target of `hook` in an event that has no hook or several: it is never active. */
static struct ky_hook no_hook KY_WRITTEN_EARLY;

/* Returns the only active hook of the list, or NULL if there are more or none. */
static struct ky_hook *find_sole_hook(struct ky_hook *hooks)
{
	struct ky_hook *sole = NULL;

	for (; hooks; hooks = hooks->next) {
		if (hooks->active && sole)
			return NULL;
		if (hooks->active)
			sole = hooks;
	}
	return sole;
}

void ky_record_choose(struct kymo_event_state *ret_state, struct ky_hook *hooks)
{
	struct ky_hook *sole = find_sole_hook(hooks);
	kymo_flat_fn flat = ky_record_flat;
	kymo_word_fn word = ky_record_word;

#if defined(__x86_64__) && defined(__LP64__)
	if (sole && sole->n_short) {
		bool known = ky_rseq_offset == KY_RSEQ_KNOWN;

		flat = known ? ky_rseq_flat_known : ky_rseq_flat;
		word = known ? ky_rseq_word_known : ky_rseq_word;
	}
#endif
	ret_state->record = ky_record_event;
	ret_state->record_flat = flat;
	ret_state->record_word = word;
	ret_state->hooks = hooks;
	ret_state->hook = sole ? sole : &no_hook;
}

void ky_record_replace(struct kymo_event_state *state, const struct kymo_event_state *by)
{
	__atomic_store_n(&state->record, by->record, __ATOMIC_RELAXED);
	__atomic_store_n(&state->record_flat, by->record_flat, __ATOMIC_RELAXED);
	__atomic_store_n(&state->record_word, by->record_word, __ATOMIC_RELAXED);
	__atomic_store_n(&state->hooks, by->hooks, __ATOMIC_RELEASE);
	/*
	 * A hook that does not belong to the function makes the function use the ways for all
	 * hooks.
	 */
	__atomic_store_n(&state->hook, by->hook, __ATOMIC_RELEASE);
}
