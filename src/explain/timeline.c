/* SPDX-License-Identifier: MIT */
#include "explain/timeline.h"

#include <inttypes.h>

#include "base/bisect.h"

#define MAX_PROCESSORS	4096
#define MAX_STEPS_DOWN	16		  /* from waker to waker, from holder to holder */
#define MAX_ALL_HISTORY ((size_t)4 << 20) /* entries of all threads together, about */

/* --- history --- */

const struct ky_open_async *ky_timeline_async(const struct ky_timeline *t)
{
	const struct ky_list *first = t->asyncs.next;

	if (ky_list_empty(&t->asyncs) || first->next != &t->asyncs)
		return NULL;
	return &ky_container_of(first, struct ky_thread_async, of_thread)->open;
}

uint32_t ky_timeline_span(const struct ky_timeline *t)
{
	const struct ky_open_async *async;

	for (size_t i = t->stack.n; i-- > 0;) {
		if (!t->stack.v[i].is_lock)
			return t->stack.v[i].name;
	}
	async = ky_timeline_async(t);
	return async ? async->name : 0;
}

int64_t ky_timeline_woken_ns(const struct ky_timeline *t, int64_t ns)
{
	size_t first = ky_timeline_first_off(t), n = t->off.n;
	const struct ky_off *last;

	while (n > first && t->off.v[n - 1].kind == KY_PART_SPAN)
		n--;
	last = n > first ? &t->off.v[n - 1] : NULL;
	return last && last->kind == KY_PART_READY ? KY_MIN(ns, last->from) : ns;
}

bool ky_timeline_is_locking(const struct ky_timeline *t)
{
	return t->stack.n && t->stack.v[t->stack.n - 1].is_lock;
}

const struct ky_frame *ky_timeline_interrupt(const struct ky_timeline *t)
{
	const struct ky_frame *top = t->stack.n ? &t->stack.v[t->stack.n - 1] : NULL;

	return top && top->is_interrupt ? top : NULL;
}

size_t ky_timeline_first_off(const struct ky_timeline *t)
{
	const struct ky_frame *interrupt = ky_timeline_interrupt(t);

	return interrupt ? interrupt->cut.n_off : 0;
}

static bool is_same(const struct ky_history *a, const struct ky_history *b)
{
	return a->state == b->state && a->span == b->span && a->thread == b->thread &&
	       a->mutex == b->mutex;
}

static int add_history(struct ky_timeline *t, const struct ky_history *h)
{
	if (t->history.n && is_same(&t->history.v[t->history.n - 1], h))
		return 0;
	ky_vec_drop_oldest(&t->history, t->max_history);
	return ky_vec_add(&t->history, *h);
}

static uint32_t doing(const struct ky_timeline *t)
{
	for (size_t i = t->stack.n; i-- > 0;) {
		if (!t->stack.v[i].is_lock)
			return t->stack.v[i].doing;
	}
	return ky_timeline_span(t);
}

int ky_timeline_note(struct ky_timeline *t, int64_t ns)
{
	struct ky_history h = {.ns = ns, .span = doing(t), .thread = UINT32_MAX};

	if (ky_timeline_is_locking(t)) {
		h.state = KY_STATE_LOCK;
		h.mutex = t->stack.v[t->stack.n - 1].mutex;
	}
	return add_history(t, &h);
}

/* --- the scheduler --- */

static int note_off(struct ky_timeline *t, int64_t ns, enum ky_thread_state state, uint32_t thread)
{
	const struct ky_history h = {
		.ns = ns, .state = (uint8_t)state, .span = doing(t), .thread = thread};

	/* Why it waits for a mutex is known better. */
	return ky_timeline_is_locking(t) ? 0 : add_history(t, &h);
}

int ky_timeline_leave(struct ky_timeline *t, int64_t ns, bool is_preempted, uint32_t processor)
{
	t->is_off = true;
	t->is_preempted = is_preempted;
	t->off_ns = ns;
	t->woken_ns = INT64_MIN;
	t->waker = UINT32_MAX;
	t->processor = processor;
	return note_off(t, ns, is_preempted ? KY_STATE_READY : KY_STATE_WAITING,
		is_preempted ? processor : UINT32_MAX);
}

int ky_timeline_wake(struct ky_timeline *t, int64_t ns, uint32_t waker)
{
	struct ky_history *last = t->history.n ? &t->history.v[t->history.n - 1] : NULL;

	if (!t->is_off || t->is_preempted || t->woken_ns != INT64_MIN)
		return 0;
	t->woken_ns = ns;
	t->waker = waker;
	if (last && last->state == KY_STATE_WAITING && last->ns == t->off_ns)
		last->thread = waker;
	return note_off(t, ns, KY_STATE_READY, t->processor);
}

static int add_off(struct ky_timeline *t, int64_t from, int64_t to, enum ky_component_kind kind,
	uint32_t thread)
{
	if (from >= to)
		return 0;
	return ky_vec_add(&t->off, (struct ky_off){.from = from,
					   .to = to,
					   .kind = kind,
					   .thread = thread,
					   .is_stopped = kind == KY_PART_WAIT && t->is_stopped});
}

int ky_timeline_run(struct ky_timeline *t, int64_t ns)
{
	int64_t from = t->had_event ? KY_MAX(t->off_ns, t->last_ns) : t->off_ns, middle;
	int r;

	if (!t->is_off)
		return 0;
	t->is_off = false;
	middle = t->is_preempted ? from : t->woken_ns == INT64_MIN ? ns : t->woken_ns;
	middle = KY_MIN(KY_MAX(middle, from), ns);
	r = add_off(t, from, middle, KY_PART_WAIT, t->waker);
	if (!r)
		r = add_off(t, middle, ns, KY_PART_READY, t->processor);
	return r ? r : ky_timeline_note(t, ns);
}

int ky_processor_switch(struct ky_processor *p, int64_t ns, uint32_t thread)
{
	p->thread = thread;
	ky_vec_drop_oldest(&p->history, (size_t)1 << 16);
	return ky_vec_add(&p->history, (struct ky_history){.ns = ns, .thread = thread});
}

/* --- threads and processors --- */

struct ky_timeline *ky_machine_timeline(struct ky_machine *m, uint32_t thread)
{
	struct ky_timeline *t;

	while (m->timelines.n <= thread) {
		if (ky_vec_add(&m->timelines, NULL) < 0)
			return NULL;
	}
	if (m->timelines.v[thread])
		return m->timelines.v[thread];
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->thread = thread;
	ky_list_init(&t->asyncs);
	t->begun_ns = INT64_MIN;
	t->max_history = KY_MIN(
		KY_MAX(MAX_ALL_HISTORY / (m->x->threads.n + 1), (size_t)256), (size_t)65536);
	m->timelines.v[thread] = t;
	return t;
}

uint32_t ky_machine_processor(struct ky_machine *m, uint32_t host, int64_t number)
{
	struct ky_processor p = {.trace_host = host,
		.number = number,
		.thread = UINT32_MAX,
		.others = UINT32_MAX,
		.block_ns = INT64_MIN};

	for (size_t i = 0; i < m->processors.n; i++) {
		if (m->processors.v[i].trace_host == host && m->processors.v[i].number == number)
			return (uint32_t)i;
	}
	/* A trace may claim any number. */
	if (m->processors.n >= MAX_PROCESSORS)
		return (uint32_t)m->processors.n - 1;
	return ky_vec_add(&m->processors, p) < 0 ? UINT32_MAX : (uint32_t)m->processors.n - 1;
}

static struct ky_timeline *free_timeline(struct ky_timeline *t)
{
	if (!t)
		return NULL;
	ky_vec_deinit(&t->stack);
	ky_vec_deinit(&t->outer);
	ky_vec_deinit(&t->off);
	ky_vec_deinit(&t->stacks);
	ky_vec_deinit(&t->history);
	ky_vec_deinit(&t->windows);
	ky_vec_deinit(&t->active);
	free(t);
	return NULL;
}

void ky_machine_deinit(struct ky_machine *m)
{
	for (size_t i = 0; i < m->timelines.n; i++)
		free_timeline(m->timelines.v[i]);
	ky_vec_deinit(&m->timelines);
	for (size_t i = 0; i < m->processors.n; i++)
		ky_vec_deinit(&m->processors.v[i].history);
	ky_vec_deinit(&m->processors);
	ky_locks_deinit(&m->locks);
}

/* --- charges --- */

/* A place in a chain of waits. */
struct link {
	unsigned depth;
	uint32_t via;
	uint64_t caller;
	bool is_load;
	bool is_instead; /* others run instead of the thread `ready` in `ready_span` */
	uint32_t ready, ready_span;
};

static void charge_thread(struct ky_machine *m, struct ky_charge *c, uint32_t thread, int64_t from,
	int64_t to, const struct link *link);

static void add_blame(
	struct ky_charge *c, uint32_t thread, uint32_t span, int64_t ns, const struct link *link)
{
	c->add(c->arg, &(struct ky_blame){.thread = thread,
			       .span = span,
			       .via = link->via,
			       .caller = link->caller,
			       .ns = ns,
			       .is_load = link->is_load,
			       .ready = link->is_instead ? link->ready : UINT32_MAX,
			       .ready_span = link->ready_span});
}

/* "thread 12 (logger) in log:write": a name. */
static uint32_t name_via(struct ky_machine *m, uint32_t thread, uint32_t span, uint32_t via)
{
	const struct ky_explain_thread *t = m->x->threads.v[thread];
	const char *name = ky_texts_get(&m->x->names, t->name);
	char text[KY_TEXTS_LENGTH];

	snprintf(text, sizeof(text), "%s%sthread %" PRId64 "%s%s%s%s%s",
		ky_texts_get(&m->x->names, via), via ? ", which waits for " : "", t->tid,
		*name ? " (" : "", name, *name ? ")" : "", span ? " in " : "",
		ky_texts_get(&m->x->names, span));
	return ky_texts_add(&m->x->names, text, strlen(text));
}

static unsigned charge_hold(struct ky_machine *m, struct ky_charge *c, const struct ky_hold *h,
	uint32_t waiter, int64_t from, int64_t to, const struct link *link)
{
	struct link below = *link;

	from = KY_MAX(from, h->from);
	to = KY_MIN(to, h->to);
	if (h->thread == waiter || from >= to)
		return 0;
	below.caller = h->caller;
	charge_thread(m, c, h->thread, from, to, &below);
	return 1;
}

/* Returns how many held it. */
static unsigned charge_mutex(struct ky_machine *m, struct ky_charge *c,
	const struct ky_mutex *mutex, uint32_t waiter, int64_t from, int64_t to,
	const struct link *link)
{
	unsigned n = 0;

	for (size_t i = 0; i < mutex->open.n; i++) {
		if (!mutex->open.v[i].is_lent)
			n += charge_hold(m, c, &mutex->open.v[i], waiter, from, to, link);
	}
	for (size_t i = mutex->closed.n; i-- > 0 && mutex->closed.v[i].to > from;)
		n += charge_hold(m, c, &mutex->closed.v[i], waiter, from, to, link);
	return n;
}

/* The index of the entry at or before ns; 0 if all are later. */
static size_t find_history(const struct ky_history *v, size_t n, int64_t ns)
{
	size_t first;

	ky_bisect(first, n, k, v[k].ns <= ns);
	return first ? first - 1 : 0;
}

uint32_t ky_timeline_span_at(const struct ky_timeline *t, int64_t ns)
{
	size_t i = t->history.n ? find_history(t->history.v, t->history.n, ns) : 0;

	return i < t->history.n && t->history.v[i].ns <= ns ? t->history.v[i].span : 0;
}

/* To what a thread did while it ran: nobody else is to blame for that. */
static void charge_work(struct ky_machine *m, struct ky_charge *c, uint32_t thread, int64_t from,
	int64_t to, const struct link *link)
{
	const struct ky_timeline *t = ky_machine_timeline(m, thread);
	size_t n = t ? t->history.n : 0, i = n ? find_history(t->history.v, n, from) : 0;

	for (int64_t end; from < to; from = end, i++) {
		uint32_t span = i < n && t->history.v[i].ns <= from ? t->history.v[i].span : 0;

		end = c->budget && i + 1 < n ? KY_MIN(KY_MAX(t->history.v[i + 1].ns, from), to)
					     : to;
		c->budget -= c->budget > 0;
		if (end > from)
			add_blame(c, thread, span, end - from, link);
	}
}

static bool is_of_process(const struct ky_machine *m, uint32_t thread, uint32_t of)
{
	return m->x->threads.v[thread]->process == m->x->threads.v[of]->process;
}

/*
 * Whether the thread is of another program than those that are recorded. A trace of some processes
 * has no events of others but switches; one of the whole system has no application's events.
 */
static bool is_foreign(const struct ky_machine *m, uint32_t thread, uint32_t of)
{
	const struct ky_explain_thread *t = m->x->threads.v[thread];
	bool had_event = thread < m->timelines.n && m->timelines.v[thread] &&
			 m->timelines.v[thread]->had_event;

	return ky_explain_is_tracer(m->x, thread) ||
	       (t->process != m->x->threads.v[of]->process &&
		       !m->x->threads.v[t->process]->is_program &&
		       !(had_event && m->x->has_others));
}

/* Threads that have the same span share the processors, whatever makes one of them slow. */
static bool is_peer(const struct ky_machine *m, uint32_t thread, uint32_t of)
{
	return !m->x->is_async && m->x->threads.v[thread]->n_instances &&
	       m->x->threads.v[of]->n_instances;
}

/* Which thread ran from the entry on. The newest may have left since, in a gap. */
static uint32_t who_ran(
	const struct ky_machine *m, const struct ky_processor *p, size_t i, uint32_t waiter)
{
	uint32_t thread = p->history.v[i].thread;
	bool may_have_left = i + 1 == p->history.n && p->others != UINT32_MAX;

	return may_have_left && thread != UINT32_MAX && !is_of_process(m, thread, waiter)
		       ? p->others
		       : thread;
}

/*
 * Returns the time in which others ran. For a thread in a chain of waits, only those of its process
 * count: others are the machine's load, and say nothing of who waits for whom.
 */
static int64_t charge_processor(struct ky_machine *m, struct ky_charge *c, uint32_t processor,
	uint32_t waiter, int64_t from, int64_t to, const struct link *link)
{
	const struct ky_processor *p = processor < m->processors.n ? &m->processors.v[processor]
								   : NULL;
	struct link below = *link;
	int64_t charged = 0;

	for (size_t i = p ? find_history(p->history.v, p->history.n, from) : 0;
		p && i < p->history.n && p->history.v[i].ns < to; i++) {
		const struct ky_history *h = &p->history.v[i];
		int64_t begin = KY_MAX(from, h->ns);
		int64_t end = i + 1 < p->history.n ? KY_MIN(h[1].ns, to) : to;
		uint32_t thread = who_ran(m, p, i, waiter);
		bool is_of_peer;

		if (thread == UINT32_MAX || thread == waiter || end <= begin)
			continue;
		is_of_peer = is_peer(m, thread, waiter);
		below.is_load = is_of_peer || is_foreign(m, thread, waiter);
		c->peers_ns += is_of_peer ? end - begin : 0;
		c->load_ns += below.is_load ? end - begin : 0;
		if (link->depth && !is_of_process(m, thread, waiter))
			continue;
		charge_work(m, c, thread, begin, end, &below);
		charged += end - begin;
	}
	return charged;
}

/* "read() and ready to run": it does nothing of what its span says. */
static uint32_t name_ready(struct ky_machine *m, uint32_t span)
{
	char text[KY_TEXTS_LENGTH];

	if (!span)
		return 0;
	snprintf(text, sizeof(text), "%s and ready to run", ky_texts_get(&m->x->names, span));
	return ky_texts_add(&m->x->names, text, strlen(text));
}

/* If it waits for a device, the call in which it does so says more than the device. */
static bool waits_for_thread(const struct ky_machine *m, const struct ky_history *h)
{
	return (h->state == KY_STATE_WAITING || h->state == KY_STATE_CONDITION) &&
	       h->thread != UINT32_MAX && m->x->threads.v[h->thread]->tid > KY_DEVICE_TID;
}

static void charge_entry(struct ky_machine *m, struct ky_charge *c, uint32_t thread,
	const struct ky_history *h, int64_t from, int64_t to, const struct link *link)
{
	struct link below = {.depth = link->depth + 1, .via = link->via};

	if (link->depth < MAX_STEPS_DOWN && h->state == KY_STATE_LOCK) {
		below.via = name_via(m, thread, h->span, link->via);
		if (charge_mutex(m, c, h->mutex, thread, from, to, &below))
			return;
	} else if (link->depth < MAX_STEPS_DOWN && waits_for_thread(m, h) && h->thread != thread) {
		below.via = name_via(m, thread, h->span, link->via);
		charge_thread(m, c, h->thread, from, to, &below);
		return;
	} else if (link->depth < MAX_STEPS_DOWN && h->state == KY_STATE_READY) {
		int64_t charged;

		below.caller = link->caller;
		below.is_instead = true;
		below.ready = thread;
		below.ready_span = h->span;
		charged = charge_processor(m, c, h->thread, thread, from, to, &below);
		if (charged == to - from)
			return;
		to -= charged;
		add_blame(c, thread, name_ready(m, h->span), to - from, link);
		return;
	}
	add_blame(c, thread, h->span, to - from, link);
}

static void charge_thread(struct ky_machine *m, struct ky_charge *c, uint32_t thread, int64_t from,
	int64_t to, const struct link *link)
{
	const struct ky_timeline *t = ky_machine_timeline(m, thread);
	int64_t at = from;

	if (!t || from >= to)
		return;
	for (size_t i = find_history(t->history.v, t->history.n, from);
		i < t->history.n && at < to && c->budget; i++) {
		const struct ky_history h = t->history.v[i];
		int64_t end = i + 1 < t->history.n ? KY_MIN(t->history.v[i + 1].ns, to) : to;

		c->budget--;
		/* Nothing is known of it before its first event. */
		if (h.ns > at)
			add_blame(c, thread, 0, KY_MIN(h.ns, to) - at, link);
		at = KY_MAX(at, h.ns);
		if (end > at)
			charge_entry(m, c, thread, &h, at, end, link);
		at = KY_MAX(at, end);
	}
	if (at < to)
		add_blame(c, thread, 0, to - at, link);
}

void ky_charge_thread(
	struct ky_machine *m, struct ky_charge *c, uint32_t thread, int64_t from, int64_t to)
{
	charge_thread(m, c, thread, from, to, &(struct link){0});
}

void ky_charge_mutex(struct ky_machine *m, struct ky_charge *c, const struct ky_mutex *mutex,
	uint32_t waiter, int64_t from, int64_t to)
{
	c->n_holders += charge_mutex(m, c, mutex, waiter, from, to, &(struct link){0});
}

void ky_charge_processor(struct ky_machine *m, struct ky_charge *c, uint32_t processor,
	uint32_t waiter, int64_t from, int64_t to)
{
	charge_processor(m, c, processor, waiter, from, to, &(struct link){0});
}
