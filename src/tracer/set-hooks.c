/* SPDX-License-Identifier: MIT */
/* The hooks that connect events with ring sets. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys.h"
#include "tracer/context.h"
#include "tracer/filter.h"
#include "tracer/sets.h"
#include "tracer/special.h"
#include "tracer/trigger.h"

/*
 * ky_hook.mapped. LINK: mapped, but only its heir records. Such a hook was renewed for an earlier
 * set, so its own records have another form than the event's.
 */
enum { HOOK_FREE, HOOK_MAPPED, HOOK_LINK, HOOK_RETIRED };
/* minimum rest of a hook before it gets other filters */
#define FILTERS_REST_NS UINT64_C(10000000000)
/* An event with so many free hooks that were renewed uses one again. */
#define MANY_RENEWED 4

/*
 * Returns the function for records of an event that the daemon mapped to this identifier, with
 * these contexts.
 */
static ky_special_fn special_for(
	uint32_t id, const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	if (id == KY_MAP_REFUSED)
		return tracer_record_refused;
	return contexts || filters ? tracer_record_special : NULL;
}

static ky_write_fn writer_of(const struct ky_set *set)
{
	struct ky_hook h;

	memset(&h, 0, sizeof(h));
	ky_hook_init(&h, (struct ky_set *)set, 0);
	return h.write;
}

/*
 * Returns true if the hook has rested long enough: any thread that had passed its old filters has
 * finished recording by then, unless it was off-CPU for FILTERS_REST_NS.
 */
static bool may_change_filters(const struct ky_hook *h)
{
	return ky_clock_read(KY_CLOCK_MONOTONIC) - h->retired_ns >= FILTERS_REST_NS;
}

static bool is_mapped(const struct ky_hook *h)
{
	return h->mapped == HOOK_MAPPED || h->mapped == HOOK_LINK;
}

/* Returns the event's hook for the set, or NULL. */
static struct ky_hook *mapped_hook(const struct tracer_event *e, const struct ky_set *set)
{
	for (struct ky_hook *h = e->hooks; h; h = h->next)
		if (is_mapped(h) && h->set == set)
			return h;
	return NULL;
}

/*
 * Makes this heir the hook's: the first of the heirs that it ever had, which are linked by `next`.
 * Recording threads follow only `heir`.
 */
static void make_heir(struct ky_hook *h, struct ky_hook *heir)
{
	struct ky_hook **link = &h->heir;

	if (heir == h->heir)
		return;
	while (*link && *link != heir)
		link = &(*link)->next;
	if (*link)
		*link = heir->next;
	heir->next = h->heir;
	/* Release: pairs with the acquire in special.c. */
	__atomic_store_n(&h->heir, heir, __ATOMIC_RELEASE);
}

/* Returns true if the hook is free, and makes records of this form. */
static bool has_form(const struct ky_hook *h, ky_special_fn special,
	const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	return h->mapped == HOOK_FREE && h->special == special && h->contexts == contexts &&
	       (h->filters == filters || may_change_filters(h));
}

static struct ky_hook *new_hook(ky_special_fn special, const struct tracer_contexts *contexts)
{
	struct ky_hook *h = tracer_alloc(sizeof(*h), true);

	if (!h)
		return NULL;
	h->special = special;
	h->contexts = contexts;
	return h;
}

/*
 * Returns a hook that can be the heir of h and makes records of this form: one that h had for an
 * earlier set, or a new one; NULL without memory.
 */
static struct ky_hook *find_heir(const struct ky_hook *h, ky_special_fn special,
	const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	struct ky_hook *heir = h->heir;

	while (heir && !has_form(heir, special, contexts, filters))
		heir = heir->next;
	return heir ? heir : new_hook(special, contexts);
}

/*
 * Returns a hook of e for the set: the one that it has, else a retired one, else a new one. A
 * thread may still hold an old hook, so a hook is used again only for the same writer, clock and
 * form of record. One that was renewed can have any form, that of its heir. Such a hook records
 * slower, so it is used only if there are many: else their number would grow without limit.
 */
static struct ky_hook *find_hook(struct tracer_event *e, struct ky_set *set, ky_special_fn special,
	const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	struct ky_hook **end = &e->hooks, *h = mapped_hook(e, set), *renewed = NULL;
	ky_write_fn write = writer_of(set);
	uint32_t n_renewed = 0;

	if (h)
		return h;
	for (; (h = *end); end = &h->next) {
		if (h->mapped != HOOK_FREE || h->write != write || h->clock != set->geo.clock)
			continue;
		if (h->heir) {
			renewed = h;
			n_renewed++;
		} else if (has_form(h, special, contexts, filters)) {
			return h;
		}
	}
	if (n_renewed >= MANY_RENEWED) {
		h = find_heir(renewed, special, contexts, filters);
		if (!h)
			return NULL;
		make_heir(renewed, h);
		return renewed;
	}
	h = new_hook(special, contexts);
	if (h)
		__atomic_store_n(end, h, __ATOMIC_RELEASE); /* pairs with ky_record's acquire */
	return h;
}

/*
 * Sets the filters for the hook's events. A hook without filters gets its `special` here: a thread
 * that has not seen it records an event as if it had been earlier.
 */
static void set_filters(
	struct ky_hook *h, ky_special_fn special, const struct tracer_filters *filters)
{
	/* Release: pairs with the acquire in special.c. */
	__atomic_store_n(&h->filters, filters, __ATOMIC_RELEASE);
	if (!h->special)
		__atomic_store_n(&h->special, special, __ATOMIC_RELEASE);
}

/*
 * Gives the event another identifier, or contexts, while it may be recorded: each record is made in
 * the old way or in the new one, never in both or none. One store decides: that of `special`, or of
 * `heir` if it is not the first.
 */
static void renew_hook(struct ky_hook *h, uint32_t id, ky_special_fn special,
	const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	struct ky_hook *heir = find_heir(h, special, contexts, filters);

	if (!heir)
		return; /* it stays unchanged */
	heir->filters = filters;
	heir->mapped = HOOK_MAPPED;
	ky_hook_init(heir, h->set, id);
	ky_hook_switch(heir, h->set->started);
	make_heir(h, heir);
	/* Release: pairs with the acquires of recording threads. */
	__atomic_store_n(&h->special, tracer_record_renewed, __ATOMIC_RELEASE);
}

static bool needs_heir(const struct ky_hook *h, uint32_t id)
{
	return is_mapped(h) && (h->heir ? h->heir->id : h->id) != id;
}

/*
 * Decides about an event whose contexts cannot be recorded. Returns false if it is mapped already,
 * and continues without these contexts. Otherwise its records have no form: returns true, and they
 * are to be counted as discarded.
 */
static bool refuse_contexts(const struct tracer_event *e, const struct tracer_set *s)
{
	if (mapped_hook(e, &s->set))
		return false;
	if (e->ev)
		tracer_event_leave_out(e->ev,
			"libkymo cannot record its channel's contexts: it is older than the session daemon, or has too many lists of contexts");
	return true;
}

/* An entry of MAP: an event of the application, and how it is recorded. */
struct map_entry {
	uint32_t index, id, n_contexts, n_filters;
	struct ky_reader filters; /* at their numbers */
};

static bool read_map_entry(struct ky_reader *r, struct map_entry *m)
{
	m->index = ky_read_u32(r);
	m->id = ky_read_u32(r);
	m->n_contexts = ky_read_u32(r);
	m->n_filters = ky_read_u32(r);
	m->filters = *r;
	for (uint32_t i = 0; i < m->n_filters && !r->error; i++)
		ky_read_u32(r);
	return !r->error;
}

/* Prepares a free hook, and its heir, for the set. */
static void init_hook(struct ky_hook *h, struct ky_set *set, uint32_t id)
{
	ky_hook_init(h, set, id);
	h->mapped = h->heir ? HOOK_LINK : HOOK_MAPPED;
	if (!h->heir)
		return;
	ky_hook_init(h->heir, set, id);
	h->heir->mapped = HOOK_MAPPED;
}

/* Switches a hook on or off, as its set is started or not, and its heirs that have the set. */
static void switch_hook(struct ky_hook *h)
{
	for (struct ky_hook *heir = h->heir; heir; heir = heir->next)
		if (heir->mapped == HOOK_MAPPED)
			ky_hook_switch(heir, h->set->started);
	if (h->mapped == HOOK_LINK)
		/* It stays without rings: a thread that holds it from earlier records nothing. */
		__atomic_store_n(&h->active, h->set->started, __ATOMIC_SEQ_CST);
	else
		ky_hook_switch(h, h->set->started);
}

static void map_event(struct tracer_set *s, struct tracer_event *e, const struct map_entry *m)
{
	const struct tracer_contexts *contexts = NULL;
	const struct tracer_filters *filters = NULL;
	ky_special_fn special;
	uint32_t id = m->id;
	struct ky_hook *h;

	if (m->n_contexts)
		contexts = tracer_contexts_first(s->contexts, m->n_contexts);
	if (m->n_contexts && !contexts) {
		if (!refuse_contexts(e, s))
			return;
		id = KY_MAP_REFUSED;
	}
	if (m->n_filters && e->ev)
		filters = tracer_filters_get(s, m->filters, m->n_filters, e->ev->fields);
	special = special_for(id, contexts, filters);
	h = find_hook(e, &s->set, special, contexts, filters);
	if (!h)
		return;
	if (needs_heir(h, id))
		renew_hook(h, id, special, contexts, filters);
	set_filters(h, special, filters);
	if (h->heir)
		set_filters(h->heir, special, filters);
	if (h->mapped == HOOK_FREE)
		init_hook(h, &s->set, id);
	/* The event knows what its contexts need before it is recorded. */
	tracer_event_update(e);
	switch_hook(h);
	tracer_event_update(e);
}

void tracer_set_map(struct tracer_conn *conn, const struct ky_app_map *msg)
{
	struct tracer_set *s = tracer_set_find(conn, msg->set);
	struct ky_reader r = {.buf = msg->list.data, .len = msg->list.len};
	struct map_entry m;

	for (uint32_t i = 0; s && i < msg->n && read_map_entry(&r, &m); i++)
		if (m.index < tracer.n_events)
			map_event(s, &tracer.events[m.index], &m);
	tracer_queries_update();
}

void tracer_set_triggers(struct tracer_conn *conn, const struct ky_app_triggers *msg)
{
	struct tracer_set *s = tracer_set_find(conn, msg->set);
	struct tracer_event *e = msg->event < tracer.n_events ? &tracer.events[msg->event] : NULL;
	struct ky_hook *h = s && e && e->ev ? mapped_hook(e, &s->set) : NULL;
	const struct tracer_filters *filters;

	if (!h || h->special == tracer_record_refused)
		return;
	filters = tracer_triggers_get(s, tracer_triggers_strip(h->filters), msg, e->ev->fields);
	set_filters(h, tracer_record_special, filters);
	if (h->heir)
		set_filters(h->heir, tracer_record_special, filters);
	tracer_event_update(e);
	switch_hook(h);
	tracer_event_update(e);
	tracer_queries_update();
}

bool tracer_set_quiesce(struct tracer_set *s)
{
	const struct timespec nap = {0, 100000};

	if (tracer.has_rseq &&
		ky_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0) < 0)
		return false; /* a seccomp filter has forbidden it meanwhile */
	for (int i = 0; __atomic_load_n(&s->set.users, __ATOMIC_SEQ_CST); i++) {
		if (i == 1000)
			return false;
		/*
		 * No thread may wait for this: in fork, or when objects are loaded. Only this
		 * thread changes sets.
		 */
		tracer_give_lock();
		ky_sys_nanosleep(&nap);
		tracer_take_lock();
	}
	return true;
}

/* Calls change(hook) for each mapped hook of the set, and updates the events. */
static void for_each_hook(struct tracer_set *s, void (*change)(struct ky_hook *h))
{
	for (uint32_t i = 0; i < tracer.n_events; i++) {
		struct tracer_event *e = &tracer.events[i];

		for (struct ky_hook *h = e->hooks; h; h = h->next) {
			if (!is_mapped(h) || h->set != &s->set)
				continue;
			change(h);
			tracer_event_update(e);
		}
	}
	tracer_queries_update();
}

void tracer_set_switch_hooks(struct tracer_set *s)
{
	for_each_hook(s, switch_hook);
}

static void retire(struct ky_hook *h)
{
	ky_hook_switch(h, false);
	h->mapped = HOOK_RETIRED;
	h->retired_ns = ky_clock_read(KY_CLOCK_MONOTONIC);
}

/*
 * Retires a hook and its heirs: they are not used again before it is certain that no thread writes
 * with them.
 */
static void retire_hook(struct ky_hook *h)
{
	for (struct ky_hook *heir = h->heir; heir; heir = heir->next)
		if (heir->mapped == HOOK_MAPPED)
			retire(heir);
	retire(h);
}

/* Frees a retired hook and its heirs, which were retired with it. */
static void free_hook(struct ky_hook *h)
{
	h->mapped = HOOK_FREE;
	for (struct ky_hook *heir = h->heir; heir; heir = heir->next)
		heir->mapped = HOOK_FREE;
}

void tracer_set_retire_hooks(struct tracer_set *s)
{
	for_each_hook(s, retire_hook);
}

bool tracer_set_free_retired(struct tracer_set *s)
{
	if (!tracer_set_quiesce(s))
		return false;
	for (uint32_t i = 0; i < tracer.n_events; i++)
		for (struct ky_hook *h = tracer.events[i].hooks; h; h = h->next)
			if (h->mapped == HOOK_RETIRED && h->set == &s->set)
				free_hook(h);
	return true;
}

void tracer_set_unmap(struct tracer_conn *conn, const struct ky_app_unmap *msg)
{
	struct tracer_set *s = tracer_set_find(conn, msg->set);
	struct ky_reader r = {.buf = msg->list.data, .len = msg->list.len};
	struct ky_hook *h;

	for (uint32_t i = 0; s && i < msg->n; i++) {
		uint32_t index = ky_read_u32(&r);

		if (r.error || index >= tracer.n_events)
			break;
		h = mapped_hook(&tracer.events[index], &s->set);
		if (h)
			retire_hook(h);
		tracer_event_update(&tracer.events[index]);
	}
	tracer_queries_update();
	if (s)
		tracer_set_free_retired(s);
}
