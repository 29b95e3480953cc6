/* SPDX-License-Identifier: MIT */
#include "tracer/trigger.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/system-call.h"
#include "ring/freeze.h"
#include "tracer/context.h"

/* Spans that are open at a time and end in a trigger. Each has one of WAYS places. */
#define GROUPS 1024u
#define WAYS   8u

#define LIST_MAX KY_SET_TRIGGERS

struct open_span {
	uint64_t key; /* of its name and number; 0: free */
	uint64_t begin_ns;
};

static struct {
	struct open_span *spans; /* GROUPS * WAYS; NULL: no trigger needs them */
	uint32_t fired;
} triggers KY_WRITTEN_EARLY;

/* --- spans --- */

/* Returns the number in the event's first field. */
static uint64_t span_id(uint32_t size, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	uint64_t id = 0;

	if (n_pieces) {
		payload = pieces->ptr;
		len = pieces->len;
	}
	memcpy(&id, payload, KY_MIN(len, (size_t)size));
	return id;
}

static uint64_t key_of(uint64_t span, uint64_t id)
{
	uint64_t key = ky_hash64_add(span, &id, sizeof(id));

	return key ? key : 1;
}

static struct open_span *group_of(struct open_span *spans, uint64_t key)
{
	return spans + (key ^ key >> 32) % GROUPS * WAYS;
}

/*
 * Notes that a span begins. If all places are taken, it takes that of the oldest span, whose end
 * may never come. Returns false in that case.
 */
static bool begin_span(struct open_span *group, uint64_t key)
{
	uint64_t now = ky_clock_read(KY_CLOCK_MONOTONIC), least = UINT64_MAX;
	struct open_span *oldest = group;

	for (uint32_t i = 0; i < WAYS; i++) {
		uint64_t none = 0, began = __atomic_load_n(&group[i].begin_ns, __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(
			    &group[i].key, &none, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_store_n(&group[i].begin_ns, now, __ATOMIC_RELAXED);
			return true;
		}
		if (began < least) {
			least = began;
			oldest = &group[i];
		}
	}
	__atomic_store_n(&oldest->key, key, __ATOMIC_RELAXED);
	__atomic_store_n(&oldest->begin_ns, now, __ATOMIC_RELAXED);
	return false;
}

/* Returns how long the newest such span lasted, and forgets it; 0 if its begin is not known. */
static uint64_t end_span(struct open_span *group, uint64_t key)
{
	struct open_span *newest = NULL;
	uint64_t began = 0;

	for (uint32_t i = 0; i < WAYS; i++) {
		uint64_t ns = __atomic_load_n(&group[i].begin_ns, __ATOMIC_RELAXED);

		if (__atomic_load_n(&group[i].key, __ATOMIC_RELAXED) == key && ns >= began) {
			newest = &group[i];
			began = ns;
		}
	}
	if (!newest || !__atomic_compare_exchange_n(
			       &newest->key, &key, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	return ky_clock_read(KY_CLOCK_MONOTONIC) - began;
}

/* --- firing --- */

/*
 * Enters a set: it stays mapped until leave_set(). Returns false if it is being dropped, or was.
 * Pairs with drop() in sets.c.
 */
static bool enter_set(struct ky_set *set)
{
	__atomic_fetch_add(&set->users, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&set->id, __ATOMIC_SEQ_CST) && set->base)
		return true;
	__atomic_fetch_sub(&set->users, 1, __ATOMIC_RELEASE);
	return false;
}

static void leave_set(struct ky_set *set)
{
	__atomic_fetch_sub(&set->users, 1, __ATOMIC_RELEASE);
}

/* Freezes all sets of the session that this process records into. */
static void freeze_session(const struct tracer_set *of, uint32_t number)
{
	for (uint32_t i = 0; i < __atomic_load_n(&tracer.n_sets, __ATOMIC_RELAXED); i++) {
		struct tracer_set *s = &tracer_sets[i];

		if (s != of && (s->conn != of->conn || !s->session || s->session != of->session))
			continue;
		if (!enter_set(&s->set))
			continue;
		ky_freeze_set(s->set.base, number, ky_thread_process());
		leave_set(&s->set);
	}
}

/* Says for people which thread has fired, and how long its span was. */
static void note_firing_thread(struct ky_set_freeze *f, uint64_t ns)
{
	/* A filter may kill for these calls. */
	uint64_t who = tracer.filtered
			       ? 0
			       : (uint64_t)(uint32_t)ky_process_number() << 32 | kymo_thread_id();

	__atomic_store_n(&f->who, who, __ATOMIC_RELAXED);
	__atomic_store_n(&f->ns, ns, __ATOMIC_RELAXED);
}

/* The event may enter a block of the frozen set. A handler that interrupts it may, too. */
static void record_exempt(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	uint64_t word[1 + KYMO_SCRATCH_SLACK / sizeof(uint64_t)] = {0};

	if (!n_pieces && len <= sizeof(*word)) { /* it may be a variable of the caller */
		memcpy(word, payload, len);
		payload = word;
	}
	ky_freeze_exempt++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tracer_record_passed(hook, payload, len, pieces, n_pieces);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ky_freeze_exempt--;
}

/* Wakes the listener: by a signal to it, which never blocks. */
static void wake_listener(void)
{
	int saved = errno;

	__atomic_store_n(&triggers.fired, 1, __ATOMIC_RELEASE);
	if (!tracer.filtered)
		tracer_listener_wake();
	errno = saved;
}

/*
 * Returns a mask of the triggers that fire now, of those whose condition is met, and sets
 * *ret_freezing to one that freezes, if there is one.
 */
static uint64_t fire_met(
	const struct tracer_triggers *t, uint64_t met, void *base, uint32_t *ret_freezing)
{
	uint64_t fired = 0;

	for (uint64_t i = 0; i < t->n; i++) {
		uint32_t number = t->list[i].number;

		if (!(met >> i & 1) || !ky_freeze_fire(base, number))
			continue;
		fired |= UINT64_C(1) << number;
		if (t->list[i].flags & KY_TRIGGER_FREEZES)
			*ret_freezing = number;
	}
	return fired;
}

/* Handles an event that meets conditions. Returns true if it still has to be recorded. */
static __attribute__((cold, noinline)) bool handle_met(const struct tracer_triggers *t,
	uint64_t met, uint64_t ns, struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	struct ky_set *set = __atomic_load_n(&hook->set, __ATOMIC_ACQUIRE);
	uint32_t freezing = UINT32_MAX;
	uint64_t fired;

	if (!set || !enter_set(set))
		return true;
	fired = ky_hook_is_active(hook) ? fire_met(t, met, set->base, &freezing) : 0;
	if (!fired) {
		leave_set(set);
		return true;
	}
	if (freezing != UINT32_MAX)
		freeze_session(ky_container_of(set, struct tracer_set, set), freezing);
	note_firing_thread(ky_freeze_of(set->base), ns);
	record_exempt(hook, payload, len, pieces, n_pieces);
	for (uint32_t i = 0; i < KY_SET_TRIGGERS; i++)
		if (fired >> i & 1)
			ky_freeze_note_recorded(set->base, i);
	leave_set(set);
	wake_listener();
	return false;
}

static __attribute__((cold, noinline)) void note_missed(struct ky_hook *hook)
{
	struct ky_set *set = __atomic_load_n(&hook->set, __ATOMIC_ACQUIRE);

	if (!set || !enter_set(set))
		return;
	__atomic_fetch_add(&ky_freeze_of(set->base)->n_missed, 1, __ATOMIC_RELAXED);
	leave_set(set);
}

/*
 * Returns true if the event is to be recorded: it passes the filters, and fires nothing. If it
 * fires a trigger, this function records it.
 */
static bool pass_triggers(const struct tracer_triggers *t, struct ky_hook *hook,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	struct open_span *spans = __atomic_load_n(&triggers.spans, __ATOMIC_RELAXED);
	uint64_t met = 0, ns = 0, key;

	if (t->filters && !tracer_filters_pass(t->filters, payload, len, pieces, n_pieces, hook))
		return false;
	if (t->role != KY_SPAN_NONE) {
		if (!spans || len > KY_BLOCK_MAX)
			return true;
		key = key_of(t->span, span_id(t->id_size, payload, len, pieces, n_pieces));
		if (t->role == KY_SPAN_END)
			ns = end_span(group_of(spans, key), key);
		else if (!begin_span(group_of(spans, key), key))
			note_missed(hook);
	}
	for (uint64_t i = 0; i < t->n; i++) {
		const struct tracer_trigger *one = &t->list[i];

		if (one->flags & KY_TRIGGER_TIMED && ns <= one->ns)
			continue;
		if (!one->code || (len <= KY_BLOCK_MAX && ky_filter_pass(one->code, payload, len,
								  pieces, n_pieces)))
			met |= UINT64_C(1) << i;
	}
	return !met || handle_met(t, met, ns, hook, payload, len, pieces, n_pieces);
}

bool tracer_filters_pass_any(const struct tracer_filters *filters, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, struct ky_hook *hook)
{
	if (filters->n == TRACER_HAS_TRIGGERS)
		return pass_triggers(filters->code[0], hook, payload, len, pieces, n_pieces);
	for (uint32_t i = 0; i < filters->n; i++)
		if (ky_filter_pass(filters->code[i], payload, len, pieces, n_pieces))
			return true;
	return false;
}

/* --- the listener --- */

/* Reads a trigger of the message. Returns false if its filter cannot be used. */
static bool read_trigger(const struct tracer_set *s, struct ky_reader *r,
	const struct kymo_field *fields, struct tracer_trigger *ret, uint32_t *want_caller)
{
	uint32_t filter;

	*ret = (struct tracer_trigger){.number = ky_read_u32(r)};
	ret->flags = ky_read_u32(r);
	filter = ky_read_u32(r);
	ret->ns = ky_read_u64(r);
	if (r->error || ret->number >= KY_SET_TRIGGERS)
		return false;
	if (filter)
		ret->code = tracer_filters_link(s, filter - 1, fields, want_caller);
	return ret->code || !filter;
}

const struct tracer_filters *tracer_triggers_get(const struct tracer_set *s,
	const struct tracer_filters *filters, const struct ky_app_triggers *msg,
	const struct kymo_field *fields)
{
	struct ky_reader r = {.buf = msg->list.data, .len = msg->list.len};
	union {
		struct tracer_triggers t;
		uint8_t room[sizeof(struct tracer_triggers) +
			     LIST_MAX * sizeof(struct tracer_trigger)];
	} u;
	uint32_t want_caller = filters ? filters->want_caller : 0;

	memset(&u, 0, sizeof(u));
	if (msg->n > LIST_MAX)
		return filters;
	for (uint32_t i = 0; i < msg->n; i++)
		if (!read_trigger(s, &r, fields, &u.t.list[i], &want_caller))
			return filters;
	u.t.filters = filters;
	u.t.span = msg->span;
	u.t.role = msg->role;
	u.t.id_size = KY_MIN(msg->id_size, 8u);
	u.t.n = msg->n;
	memset(&u.t.quick, 0xff, sizeof(u.t.quick));
	if (!filters && msg->role == KY_SPAN_NONE && msg->n == 1 && u.t.list[0].code)
		u.t.quick = ((const struct ky_filter_code *)u.t.list[0].code)->quick;
	if (msg->role != KY_SPAN_NONE && !triggers.spans)
		__atomic_store_n(&triggers.spans,
			tracer_alloc(GROUPS * WAYS * sizeof(struct open_span), true),
			__ATOMIC_RELAXED);
	return tracer_filters_with(filters,
		tracer_filters_keep(&u, sizeof(u.t) + msg->n * sizeof(*u.t.list)), want_caller);
}

const struct tracer_filters *tracer_triggers_strip(const struct tracer_filters *filters)
{
	if (!filters || filters->n != TRACER_HAS_TRIGGERS)
		return filters;
	return ((const struct tracer_triggers *)filters->code[0])->filters;
}

bool tracer_triggers_fired(void)
{
	return __atomic_exchange_n(&triggers.fired, 0, __ATOMIC_ACQUIRE);
}

void tracer_triggers_reset(void)
{
	triggers.spans = NULL;
	triggers.fired = 0;
}
