/* SPDX-License-Identifier: MIT */
/*
 * Pass 2: the account of each chosen instance.
 *
 * An instance of a thread is one window: its thread, from its begin to its end. An asynchronous one
 * is several: each stage (an asynchronous span with the same number inside) and what lies between
 * stages belongs to the thread in which it ends. Each stretch of a thread is added to the windows
 * that are open there.
 */
#include "explain/account.h"

#include <inttypes.h>

#include "explain/timeline.h"

#define SHORT_WAIT_NS 20000  /* an owner that waited less did not wait for the one before */
#define WAKE_NS	      2000   /* an acquisition so long before the next event is no race */
#define BLOCK_WAKE_NS 100000 /* a completed request wakes those that wait for it so soon */
#define MIN_WAIT_NS   1000   /* waits that are charged to somebody */
#define CHARGE_BUDGET 4096
#define MAX_SEEN      64 /* event names of an instance whose fields were taken */

struct ky_window {
	struct ky_instance *instance;
	uint32_t thread;
	int64_t from, to;
	uint32_t prefix;       /* component that the window's time belongs to */
	bool is_instance;      /* it begins and ends with the instance's own events */
	size_t strip;	       /* frames of the stack that are outside of it */
	KY_VEC(uint32_t) path; /* components: the prefix, and of each frame above strip */
	KY_VEC(uint32_t) seen; /* names of events whose fields were taken */
};

/* Spans of one name, of all threads. */
struct company {
	size_t n_open;
	int64_t since, total;
};

/* An asynchronous span within an asynchronous instance. */
struct stage {
	uint64_t id;
	uint32_t name, thread, end_thread;
	int64_t from, to;
};

/* Begun in a thread, and not ended. */
struct open_async {
	struct ky_hnode node;
	uint32_t name;
	uint64_t id;
	struct ky_timeline *thread;
};

struct account {
	struct ky_explain *x;
	struct ky_source *source;
	struct ky_instances *of;
	struct ky_instance **chosen; /* in order of their begins */
	size_t n;
	struct ky_machine machine;
	KY_VEC(struct ky_window *) windows; /* owned */
	KY_VEC(struct company) company;	    /* by index in x->company */
	KY_VEC(uint32_t) company_of;	    /* by name: index + 1 in x->company */
	KY_VEC(struct ky_instance *) by_id; /* asynchronous ones, sorted by number, then begin */
	KY_VEC(struct stage) stages;
	struct ky_htab open_async;
	int error;
};

static void check(struct account *a, int r)
{
	if (r < 0 && !a->error)
		a->error = r;
}

static uint32_t hash_async(uint32_t name, uint64_t id)
{
	const uint64_t key[] = {name, id};

	return ky_hash(key, sizeof(key));
}

/* --- company --- */

static struct company *find_company(struct account *a, uint32_t name)
{
	while (a->company_of.n <= name) {
		if (ky_vec_add(&a->company_of, 0) < 0)
			return NULL;
	}
	if (!a->company_of.v[name]) {
		size_t i = 0;

		while (i < a->x->company.n && a->x->company.v[i] != name)
			i++;
		if (i == KY_MAX_COMPANY ||
			(i == a->x->company.n && ky_vec_add(&a->x->company, name) < 0))
			return NULL;
		a->company_of.v[name] = (uint32_t)i + 1;
	}
	while (a->company.n < a->company_of.v[name]) {
		if (ky_vec_add(&a->company, (struct company){0}) < 0)
			return NULL;
	}
	return &a->company.v[a->company_of.v[name] - 1];
}

static void company_begins(struct account *a, uint32_t name, int64_t ns)
{
	struct company *c = find_company(a, name);

	if (c && !c->n_open++)
		c->since = ns;
}

static void company_ends(struct account *a, uint32_t name, int64_t ns)
{
	struct company *c = find_company(a, name);

	if (c && c->n_open && !--c->n_open)
		c->total += ns - c->since;
}

static int64_t company_until(const struct account *a, size_t i, int64_t ns)
{
	const struct company *c = &a->company.v[i];

	return c->total + (c->n_open ? ns - c->since : 0);
}

static void open_company(struct account *a, struct ky_instance *i)
{
	i->company_before = calloc(KY_MAX_COMPANY, sizeof(*i->company_before));
	if (!i->company_before)
		check(a, -ENOMEM);
	for (size_t k = 0; i->company_before && k < a->company.n; k++)
		i->company_before[k] = company_until(a, k, i->begin_ns);
}

static void close_company(struct account *a, struct ky_instance *i)
{
	for (size_t k = 0; i->company_before && k < a->company.n; k++) {
		int64_t ns = company_until(a, k, i->end_ns) - i->company_before[k];

		if (ns > 0)
			check(a, ky_vec_add(
					 &i->company, (struct ky_company){a->x->company.v[k], ns}));
	}
}

/* --- traits --- */

static void add_trait(
	struct account *a, struct ky_instance *i, struct ky_trait_key key, struct ky_fact fact)
{
	uint32_t number = ky_explain_key(a->x, key);

	if (fact.type == KY_FACT_NONE || i->traits.n >= KY_MAX_TRAITS || number == UINT32_MAX)
		return;
	for (size_t k = 0; k < i->traits.n; k++) {
		if (i->traits.v[k].key == number)
			return;
	}
	check(a, ky_vec_add(&i->traits, (struct ky_trait){number, fact}));
}

/* Identity and bookkeeping: each has a trait of its own, or is none. */
static bool is_own_field(const struct ky_source_class *c, const struct ky_field *f)
{
	if (f->scope == KY_SCOPE_PACKET_CONTEXT)
		return true;
	for (size_t i = 0; i <= KY_FIELD_SPAN; i++) {
		if (c->known[i] == f)
			return true;
	}
	return false;
}

/* Fields of the event in the scopes that make sense for the kind. */
static void add_fields(struct account *a, struct ky_instance *i, const struct ky_source_event *e,
	enum ky_trait_kind kind, uint32_t name, bool contexts)
{
	for (size_t k = 0; k < e->class->fields.n; k++) {
		const struct ky_field *f = &e->class->fields.v[k];

		if ((f->scope == KY_SCOPE_FIELDS) == contexts || is_own_field(e->class, f))
			continue;
		add_trait(a, i, (struct ky_trait_key){kind, name, f->name},
			ky_source_fact(a->source, e, f));
	}
}

static struct ky_fact number_fact(int64_t number)
{
	return (struct ky_fact){KY_FACT_INT, .number = number};
}

static void add_begin_traits(struct account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *t)
{
	const struct ky_explain_thread *thread = a->x->threads.v[i->thread];
	int64_t cpu = ky_source_number(e, KY_FIELD_CPU, -1);

	add_fields(a, i, e, KY_TRAIT_BEGIN, 0, false);
	add_fields(a, i, e, KY_TRAIT_CONTEXT, 0, true);
	add_trait(a, i, (struct ky_trait_key){KY_TRAIT_THREAD, 0, 0}, number_fact(i->thread));
	if (thread->pid >= 0)
		add_trait(a, i, (struct ky_trait_key){KY_TRAIT_PROCESS, 0, 0},
			number_fact(thread->process));
	if (cpu >= 0)
		add_trait(a, i, (struct ky_trait_key){KY_TRAIT_CPU, 0, 0}, number_fact(cpu));
	if (!t || !ky_timeline_span(t))
		return;
	add_trait(a, i, (struct ky_trait_key){KY_TRAIT_CALLER, 0, 0},
		(struct ky_fact){KY_FACT_TEXT, .text = ky_timeline_span(t)});
	for (size_t k = t->outer.n; k-- > 0;)
		add_trait(a, i, a->x->keys.v[t->outer.v[k].key], t->outer.v[k].fact);
}

/* The first event of each name inside. */
static void add_inner_traits(
	struct account *a, struct ky_window *w, const struct ky_source_event *e)
{
	for (size_t i = 0; i < w->seen.n; i++) {
		if (w->seen.v[i] == e->class->name)
			return;
	}
	/* Fields of the kernel are addresses, numbers of descriptors and the like. */
	if (w->seen.n >= MAX_SEEN || e->class->is_kernel)
		return;
	check(a, ky_vec_add(&w->seen, e->class->name));
	add_fields(a, w->instance, e, KY_TRAIT_INNER,
		e->class->base ? e->class->base : e->class->name, false);
}

/* Remembers the fields of a span's begin for instances that begin inside. */
static void push_outer(struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	for (size_t k = 0; k < e->class->fields.n && t->outer.n < KY_MAX_TRAITS; k++) {
		const struct ky_field *f = &e->class->fields.v[k];
		uint32_t key;

		if (f->scope != KY_SCOPE_FIELDS || is_own_field(e->class, f))
			continue;
		key = ky_explain_key(
			a->x, (struct ky_trait_key){KY_TRAIT_OUTER, e->class->base, f->name});
		check(a, ky_vec_add(&t->outer,
				 (struct ky_trait){key, ky_source_fact(a->source, e, f)}));
	}
}

/* --- stretches --- */

static uint32_t child(
	struct account *a, uint32_t parent, enum ky_component_kind kind, uint32_t n, uint32_t m)
{
	return ky_component_child(&a->x->components, parent, kind, n, m);
}

static void add(
	struct account *a, struct ky_window *w, uint32_t component, uint32_t count, int64_t ns)
{
	check(a, ky_instance_add(w->instance, component, count, ns));
}

static uint32_t top(const struct ky_window *w)
{
	return w->path.v[w->path.n - 1];
}

/* The component of the frame that was pushed last. */
static void push_path(struct account *a, struct ky_window *w, const struct ky_frame *f)
{
	uint32_t c = child(a, top(w), f->is_lock ? KY_PART_LOCK : KY_PART_SPAN, f->name, 0);

	check(a, ky_vec_add(&w->path, c));
	add(a, w, c, 1, 0);
}

static void open_window(struct account *a, struct ky_timeline *t, struct ky_window *w, size_t strip)
{
	w->strip = strip;
	w->path.n = 0;
	check(a, ky_vec_add(&w->path, w->prefix));
	check(a, ky_vec_add(&t->active, w));
	for (size_t i = strip; i < t->stack.n && !a->error; i++)
		push_path(a, w, &t->stack.v[i]);
}

/* Windows that begin within the stretch that ends now. */
static void open_windows(struct account *a, struct ky_timeline *t, int64_t ns)
{
	while (t->next_window < t->windows.n && t->windows.v[t->next_window]->from < ns) {
		struct ky_window *w = t->windows.v[t->next_window++];

		/* The begin of an instance that is a window is found by its event. */
		if (!w->is_instance)
			open_window(a, t, w, 0);
	}
}

/* Part [from, to] of the stretch, where the thread did not run; count: of the stretch. */
static void add_off(struct account *a, struct ky_window *w, const struct ky_off *off,
	uint32_t way_a, uint32_t way_b)
{
	int64_t from = KY_MAX(off->from, w->from), to = KY_MIN(off->to, w->to);
	uint32_t c;

	if (from >= to)
		return;
	c = child(a, top(w), off->kind, 0, 0);
	add(a, w, c, 1, 0);
	add(a, w, child(a, c, KY_PART_WAY, way_a, way_b), 1, to - from);
}

static int64_t off_within(const struct ky_timeline *t, int64_t from, int64_t to)
{
	int64_t ns = 0;

	for (size_t i = 0; i < t->off.n; i++) {
		int64_t begin = KY_MAX(t->off.v[i].from, from), end = KY_MIN(t->off.v[i].to, to);

		ns += begin < end ? end - begin : 0;
	}
	return ns;
}

/*
 * The only asynchronous span that is open in the thread is what it works on. In a loop that has
 * several open, none is. Stages of the instance itself have their place already.
 */
static uint32_t async_part(struct account *a, const struct ky_timeline *t, struct ky_window *w)
{
	uint32_t c = top(w);

	if (t->n_async != 1 || ky_timeline_is_locking(t) || t->async_name == a->x->span ||
		(a->x->is_async && t->async_id == w->instance->id))
		return c;
	c = child(a, c, KY_PART_SPAN, t->async_name, 0);
	if (t->is_async_new || t->last_ns < w->from)
		add(a, w, c, 1, 0);
	return c;
}

static void add_stretch(struct account *a, struct ky_timeline *t, struct ky_window *w, int64_t ns,
	uint32_t b, bool is_condition)
{
	int64_t from = KY_MAX(t->last_ns, w->from), to = KY_MIN(ns, w->to), off = 0;
	uint32_t parent, name = t->last_name;

	if (!t->had_event || from > to)
		return;
	parent = async_part(a, t, w);
	if (is_condition) {
		parent = child(a, parent, KY_PART_CONDITION, 0, 0);
		add(a, w, parent, 1, 0);
	} else if (!ky_timeline_is_locking(t)) {
		for (size_t i = 0; i < t->off.n; i++)
			add_off(a, w, &t->off.v[i], name, b);
		off = off_within(t, from, to);
	}
	add(a, w, child(a, parent, KY_PART_WAY, name, b), 1, to - from - off);
}

/* --- charges --- */

struct charge_target {
	struct account *account;
	struct ky_instance *instance;
	uint32_t component;
};

static void add_blame(void *arg, const struct ky_blame *blame)
{
	const struct charge_target *target = arg;
	struct ky_instance *i = target->instance;

	for (size_t k = 0; k < i->blames.n; k++) {
		struct ky_blame *b = &i->blames.v[k];

		if (b->component == target->component && b->thread == blame->thread &&
			b->span == blame->span && b->via == blame->via &&
			b->caller == blame->caller) {
			b->ns += blame->ns;
			return;
		}
	}
	if (i->blames.n == KY_MAX_BLAMES)
		return;
	check(target->account, ky_vec_add(&i->blames, *blame));
	if (i->blames.n)
		i->blames.v[i->blames.n - 1].component = target->component;
}

static void add_wait(struct account *a, struct ky_instance *i, uint32_t component, uint64_t mutex,
	unsigned n_holders, int64_t ns)
{
	for (size_t k = 0; k < i->waits.n; k++) {
		struct ky_wait *w = &i->waits.v[k];

		if (w->component == component && w->mutex == mutex) {
			w->n++;
			w->n_holders += n_holders;
			w->ns += ns;
			return;
		}
	}
	if (i->waits.n < KY_MAX_BLAMES)
		check(a, ky_vec_add(
				 &i->waits, (struct ky_wait){component, 1, n_holders, mutex, ns}));
}

/* The three kinds of waits: for a mutex, for a thread, for a processor. */
struct wait_for {
	const struct ky_mutex *mutex;
	uint32_t thread, processor;
};

static void charge(struct account *a, const struct ky_timeline *t, struct ky_window *w,
	uint32_t component, const struct wait_for *wait, int64_t from, int64_t to)
{
	struct charge_target target = {a, w->instance, component};
	struct ky_charge c = {.add = add_blame, .arg = &target, .budget = CHARGE_BUDGET};

	from = KY_MAX(from, w->from);
	to = KY_MIN(to, w->to);
	if (to - from < MIN_WAIT_NS)
		return;
	if (wait->mutex)
		ky_charge_mutex(&a->machine, &c, wait->mutex, t->thread, from, to);
	else if (wait->thread != UINT32_MAX)
		ky_charge_thread(&a->machine, &c, wait->thread, from, to);
	else
		ky_charge_processor(&a->machine, &c, wait->processor, t->thread, from, to);
	add_wait(a, w->instance, component, wait->mutex ? wait->mutex->address : 0, c.n_holders,
		to - from);
}

static void charge_condition(
	struct account *a, struct ky_timeline *t, const struct ky_wake *wake, int64_t ns)
{
	const struct wait_for wait = {.thread = wake->thread};
	struct ky_history *last = t->history.n ? &t->history.v[t->history.n - 1] : NULL;

	for (size_t i = 0; i < t->active.n; i++)
		charge(a, t, t->active.v[i], child(a, top(t->active.v[i]), KY_PART_CONDITION, 0, 0),
			&wait, t->last_ns, ns);
	/* Others that wait for this thread pass their wait on. */
	if (last && last->state == KY_STATE_RUNNING) {
		last->state = KY_STATE_CONDITION;
		last->thread = wake->thread;
	}
}

static void charge_off(struct account *a, struct ky_timeline *t)
{
	for (size_t k = 0; k < t->off.n && !ky_timeline_is_locking(t); k++) {
		const struct ky_off *off = &t->off.v[k];
		const struct wait_for wait = {
			.thread = off->kind == KY_PART_WAIT ? off->thread : UINT32_MAX,
			.processor = off->kind == KY_PART_READY ? off->thread : UINT32_MAX};

		for (size_t i = 0; i < t->active.n; i++)
			charge(a, t, t->active.v[i], child(a, top(t->active.v[i]), off->kind, 0, 0),
				&wait, off->from, off->to);
	}
}

static void charge_lock(struct account *a, const struct ky_timeline *t,
	const struct ky_mutex *mutex, int64_t from, int64_t to)
{
	const struct wait_for wait = {.mutex = mutex, .thread = UINT32_MAX};

	for (size_t i = 0; i < t->active.n; i++)
		charge(a, t, t->active.v[i], top(t->active.v[i]), &wait, from, to);
}

/* --- conditions --- */

static bool is_open_hold(const struct ky_mutex *m, uint32_t thread, int64_t from)
{
	for (size_t i = 0; i < m->open.n; i++) {
		if (m->open.v[i].thread == thread && m->open.v[i].from == from)
			return true;
	}
	return false;
}

/*
 * pthread_cond_wait() is not recorded, but it gives the mutex back: another thread acquires it
 * while this one holds it. The next owner proves nothing: its acquisition may be recorded just
 * before our release.
 */
static const struct ky_wake *find_wake(const struct ky_timeline *t, const struct ky_source_event *e)
{
	bool early = t->wake.is_set && t->wake.ns < e->ns - WAKE_NS / 4;
	bool late = t->late_wake.is_set && t->late_wake.ns < e->ns - WAKE_NS &&
		    !is_open_hold(t->late_wake.mutex, t->late_wake.thread, t->late_wake.ns);

	if (early && late && t->wake.is_peer && !t->late_wake.is_peer)
		return &t->late_wake;
	if (early)
		return &t->wake;
	return late && e->kind != KY_EVENT_UNLOCK ? &t->late_wake : NULL;
}

/* Threads that run the same span wait for the same thing more often than they signal it. */
static bool is_peer(const struct ky_timeline *a, const struct ky_timeline *b)
{
	return a->stack.n && b && b->stack.n && a->stack.v[0].name == b->stack.v[0].name;
}

/* The newest counts, but a peer only if there is no other. */
static void notice_owner(
	struct account *a, struct ky_timeline *t, struct ky_wake by, int64_t waited)
{
	struct ky_wake *wake = waited < SHORT_WAIT_NS ? &t->wake : &t->late_wake;

	by.is_peer = is_peer(t, ky_machine_timeline(&a->machine, by.thread));
	if (!wake->is_set || wake->is_peer || !by.is_peer)
		*wake = by;
}

static void notice_owners(
	struct account *a, struct ky_mutex *m, uint32_t thread, int64_t ns, int64_t waited)
{
	for (size_t i = 0; i < m->open.n; i++) {
		const struct ky_hold *h = &m->open.v[i];
		struct ky_timeline *t;

		if (h->thread == thread)
			continue;
		t = ky_machine_timeline(&a->machine, h->thread);
		if (t)
			notice_owner(a, t, (struct ky_wake){true, false, ns, thread, m}, waited);
	}
}

/* --- events of a thread --- */

/* Accounts for the time between the thread's newest event and this one. */
static void end_stretch(struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	const struct ky_wake *wake = t->wake.is_set || t->late_wake.is_set ? find_wake(t, e) : NULL;

	open_windows(a, t, e->ns);
	for (size_t i = 0; i < t->active.n; i++)
		add_stretch(a, t, t->active.v[i], e->ns, e->class->name, wake);
	if (wake)
		charge_condition(a, t, wake, e->ns);
	else
		charge_off(a, t);
	for (size_t i = 0; i < t->active.n; i++) {
		struct ky_window *w = t->active.v[i];

		if (!w->is_instance && w->to <= e->ns)
			t->active.v[i--] = t->active.v[--t->active.n];
	}
	t->wake.is_set = t->late_wake.is_set = false;
	t->is_async_new = false;
	t->off.n = 0;
}

static void push_frame(struct account *a, struct ky_timeline *t, const struct ky_frame *f)
{
	if (t->stack.n >= (size_t)16 * KY_MAX_DEPTH)
		return;
	check(a, ky_vec_add(&t->stack, *f));
	for (size_t i = 0; i < t->active.n && !a->error; i++)
		push_path(a, t->active.v[i], f);
}

/* Closes the frames from index n on. */
static void pop_frames(struct account *a, struct ky_timeline *t, size_t n, int64_t ns)
{
	for (size_t i = t->stack.n; i-- > n;) {
		const struct ky_frame *f = &t->stack.v[i];

		if (!f->is_lock && !f->is_pair)
			company_ends(a, f->name, ns);
		t->outer.n = f->n_outer;
	}
	t->stack.n = n;
	for (size_t i = 0; i < t->active.n; i++) {
		struct ky_window *w = t->active.v[i];
		size_t length = n > w->strip ? 1 + n - w->strip : 1;

		w->path.n = KY_MIN(w->path.n, length);
		w->strip = KY_MIN(w->strip, n);
	}
}

static void begin_instance(struct account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *outside)
{
	check(a, ky_instance_add(i, KY_ROOT, 1, 0));
	open_company(a, i);
	add_begin_traits(a, i, e, outside);
}

static void end_instance(struct account *a, struct ky_instance *i, const struct ky_source_event *e)
{
	close_company(a, i);
	add_fields(a, i, e, KY_TRAIT_END, 0, false);
}

static struct ky_window *begins_window(
	struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	if (e->class->base != a->x->span || a->x->is_async)
		return NULL;
	while (t->next_window < t->windows.n && t->windows.v[t->next_window]->from < e->ns)
		t->next_window++;
	if (t->next_window == t->windows.n || t->windows.v[t->next_window]->from != e->ns)
		return NULL;
	return t->windows.v[t->next_window++];
}

static void begin_span(struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	struct ky_frame f = {.name = e->class->base,
		.begin_ns = e->ns,
		.is_pair = e->kind == KY_EVENT_PAIR_ENTRY,
		.n_outer = t->outer.n};
	struct ky_window *w = f.is_pair ? NULL : begins_window(a, t, e);

	if (w)
		begin_instance(a, w->instance, e, t);
	push_frame(a, t, &f);
	if (f.is_pair)
		return;
	company_begins(a, f.name, e->ns);
	push_outer(a, t, e);
	if (w)
		open_window(a, t, w, t->stack.n);
}

/* Time that no event of its threads accounts for is one way, from begin to end. */
static void close_instance(struct account *a, struct ky_instance *i)
{
	static const char ends[] = "(no event of its thread)";
	int64_t rest = i->end_ns - i->begin_ns;

	for (size_t k = 0; k < i->parts.n; k++)
		rest -= i->parts.v[k].ns;
	if (rest) {
		uint32_t name = ky_texts_add(&a->x->names, ends, sizeof(ends) - 1);

		check(a, ky_instance_add(i, child(a, KY_ROOT, KY_PART_WAY, name, name), 1, rest));
	}
	check(a, ky_instance_close(a->x, i));
}

/* The windows of instances that end with this event. */
static void end_windows(struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	for (size_t i = 0; i < t->active.n; i++) {
		struct ky_window *w = t->active.v[i];

		if (!w->is_instance || w->to > e->ns)
			continue;
		end_instance(a, w->instance, e);
		close_instance(a, w->instance);
		t->active.v[i--] = t->active.v[--t->active.n];
	}
}

static void end_span(struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	size_t i = t->stack.n;

	if (e->class->base == a->x->span)
		end_windows(a, t, e);
	while (i-- > 0) {
		if (!t->stack.v[i].is_lock && t->stack.v[i].name == e->class->base) {
			pop_frames(a, t, i, e->ns);
			return;
		}
	}
}

static struct ky_mutex *mutex_of(
	struct account *a, const struct ky_timeline *t, const struct ky_source_event *e)
{
	const struct ky_explain_thread *thread = a->x->threads.v[t->thread];
	/* Without process numbers, all threads count as one process. */
	uint64_t process = thread->pid < 0 ? UINT64_MAX : thread->process;
	struct ky_mutex *m = ky_locks_get(
		&a->machine.locks, process, (uint64_t)ky_source_number(e, KY_FIELD_MUTEX, 0));

	check(a, m ? 0 : -ENOMEM);
	return m;
}

static void request_lock(struct account *a, struct ky_timeline *t, const struct ky_source_event *e,
	struct ky_mutex *m)
{
	struct ky_frame f = {.is_lock = true, .begin_ns = e->ns, .mutex = m, .n_outer = t->outer.n};

	if (ky_timeline_is_locking(t))
		pop_frames(a, t, t->stack.n - 1, e->ns);
	if (m->open.n)
		m->is_contended = true;
	push_frame(a, t, &f);
}

static void hold_lock(struct account *a, struct ky_timeline *t, const struct ky_source_event *e,
	struct ky_mutex *m, int64_t waited)
{
	const struct ky_hold hold = {.from = e->ns,
		.to = INT64_MAX,
		.thread = t->thread,
		.span = ky_timeline_span(t),
		.caller = (uint64_t)ky_source_number(e, KY_FIELD_CALLER, 0)};

	notice_owners(a, m, t->thread, e->ns, waited);
	check(a, ky_mutex_acquire(m, &hold));
}

static void acquire_lock(struct account *a, struct ky_timeline *t, const struct ky_source_event *e,
	struct ky_mutex *m)
{
	int64_t waited = 0;

	if (ky_timeline_is_locking(t)) {
		int64_t from = t->stack.v[t->stack.n - 1].begin_ns;

		waited = e->ns - from;
		charge_lock(a, t, m, from, e->ns);
		pop_frames(a, t, t->stack.n - 1, e->ns);
	}
	if (!ky_source_number(e, KY_FIELD_STATUS, 0))
		hold_lock(a, t, e, m, waited);
}

/* Failed trylocks are a wait from the first of them to the last. */
static void try_lock(struct account *a, struct ky_timeline *t, const struct ky_source_event *e,
	struct ky_mutex *m)
{
	bool failed = ky_source_number(e, KY_FIELD_STATUS, 0);

	if (failed && m->open.n)
		m->is_contended = true;
	if (t->tried == m) {
		charge_lock(a, t, m, t->try_ns, e->ns);
		t->try_ns = e->ns;
	}
	if (failed && t->tried != m) {
		t->tried = m;
		t->try_ns = e->ns;
	}
	if (!failed) {
		t->tried = NULL;
		hold_lock(a, t, e, m, 0);
	}
}

static void add_lock_event(
	struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	struct ky_mutex *m = mutex_of(a, t, e);

	if (!m)
		return;
	if (e->kind == KY_EVENT_LOCK_REQ)
		request_lock(a, t, e, m);
	else if (e->kind == KY_EVENT_LOCK_ACQ)
		acquire_lock(a, t, e, m);
	else if (e->kind == KY_EVENT_TRYLOCK)
		try_lock(a, t, e, m);
	else if (!ky_source_number(e, KY_FIELD_STATUS, 0))
		check(a, ky_mutex_release(m, t->thread, e->ns));
}

/* --- asynchronous spans --- */

static void find_async(struct account *a, const struct ky_source_event *e)
{
	uint64_t id = (uint64_t)ky_source_number(e, KY_FIELD_SPAN, 0);
	bool is_begin = e->kind == KY_EVENT_ASYNC_BEGIN;
	size_t lo = 0, hi = a->by_id.n;

	if (e->class->base != a->x->span || !a->x->is_async)
		return;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (a->by_id.v[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < a->by_id.n && a->by_id.v[lo]->id == id; lo++) {
		struct ky_instance *i = a->by_id.v[lo];

		if (is_begin && i->begin_ns == e->ns && !i->company_before)
			begin_instance(a, i, e, NULL);
		else if (!is_begin && i->end_ns == e->ns && i->company_before)
			end_instance(a, i, e);
	}
}

/* An asynchronous span belongs to the thread where it began, until it ends anywhere. */
static void begin_async(
	struct account *a, struct ky_timeline *t, const struct ky_source_event *e, uint64_t id)
{
	struct open_async *o = calloc(1, sizeof(*o));

	if (!o || ky_htab_add(&a->open_async, &o->node, hash_async(e->class->base, id)) < 0) {
		free(o);
		check(a, -ENOMEM);
		return;
	}
	o->name = e->class->base;
	o->id = id;
	o->thread = t;
	t->n_async++;
	t->async_name = o->name;
	t->async_id = id;
	t->is_async_new = true;
}

static struct open_async *find_open_async(struct account *a, uint32_t name, uint64_t id)
{
	for (struct ky_hnode *n = ky_htab_first(&a->open_async, hash_async(name, id)); n;
		n = ky_htab_next(n)) {
		struct open_async *o = ky_container_of(n, struct open_async, node);

		if (o->name == name && o->id == id)
			return o;
	}
	return NULL;
}

/* The one that is left, if only one is, is looked up among all: threads with several are rare. */
static void find_last_async(struct account *a, struct ky_timeline *t)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&a->open_async, i, n, tmp)
	{
		const struct open_async *o = ky_container_of(n, struct open_async, node);

		if (o->thread == t) {
			t->async_name = o->name;
			t->async_id = o->id;
		}
	}
}

static void end_async(struct account *a, const struct ky_source_event *e, uint64_t id)
{
	struct open_async *o = find_open_async(a, e->class->base, id);
	struct ky_timeline *t = o ? o->thread : NULL;

	if (!o)
		return;
	ky_htab_remove(&a->open_async, &o->node);
	free(o);
	if (--t->n_async == 1)
		find_last_async(a, t);
}

static void add_async_event(
	struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	uint64_t id = (uint64_t)ky_source_number(e, KY_FIELD_SPAN, 0);

	/* Instances themselves are what is looked at, not what a thread works on. */
	if (t && e->kind == KY_EVENT_ASYNC_BEGIN && e->class->base != a->x->span)
		begin_async(a, t, e, id);
	else if (e->kind == KY_EVENT_ASYNC_END)
		end_async(a, e, id);
	find_async(a, e);
	if (e->kind == KY_EVENT_ASYNC_BEGIN)
		company_begins(a, e->class->base, e->ns);
	else
		company_ends(a, e->class->base, e->ns);
}

/* --- events --- */

static void add_thread_event(
	struct account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	check(a, ky_timeline_run(t, e->ns));
	end_stretch(a, t, e);
	for (size_t i = 0; i < t->active.n && !e->class->is_lock && !e->class->is_alloc; i++)
		add_inner_traits(a, t->active.v[i], e);
	switch (e->kind) {
	case KY_EVENT_SPAN_BEGIN:
	case KY_EVENT_PAIR_ENTRY:
		begin_span(a, t, e);
		break;
	case KY_EVENT_SPAN_END:
	case KY_EVENT_PAIR_EXIT:
		end_span(a, t, e);
		break;
	case KY_EVENT_LOCK_REQ:
	case KY_EVENT_LOCK_ACQ:
	case KY_EVENT_TRYLOCK:
	case KY_EVENT_UNLOCK:
		add_lock_event(a, t, e);
		break;
	default:
		break;
	}
	t->had_event = true;
	t->last_ns = e->ns;
	t->last_name = e->class->name;
}

static struct ky_timeline *timeline_of(struct account *a, uint32_t host, int64_t tid, int64_t pid)
{
	uint32_t thread = ky_explain_thread(a->x, a->of->is_second, host, tid, pid);
	struct ky_timeline *t = thread == UINT32_MAX ? NULL
						     : ky_machine_timeline(&a->machine, thread);

	check(a, t ? 0 : -ENOMEM);
	return t;
}

static void name_thread(struct account *a, const struct ky_timeline *t, uint32_t name)
{
	if (t && name)
		a->x->threads.v[t->thread]->name = name;
}

/* A thread may run without a switch that says so; tasks of number 0 are idle. */
static void add_switch(struct account *a, const struct ky_source_event *e, uint32_t processor)
{
	int64_t prev = ky_source_number(e, KY_FIELD_PREV_TID, 0);
	int64_t next = ky_source_number(e, KY_FIELD_NEXT_TID, 0);
	int64_t state = ky_source_number(e, KY_FIELD_PREV_STATE, 0);
	struct ky_processor *p = &a->machine.processors.v[processor];
	struct ky_timeline *t;

	p->is_known = true;
	if (prev > 0 && (t = timeline_of(a, e->host, prev, -1))) {
		check(a, ky_timeline_run(t, e->ns));
		check(a, ky_timeline_leave(t, e->ns, state == 0 || state >= 256, processor));
	}
	t = next > 0 ? timeline_of(a, e->host, next, -1) : NULL;
	check(a, ky_processor_switch(p, e->ns, t ? t->thread : UINT32_MAX));
	if (!t)
		return;
	if (!a->x->threads.v[t->thread]->name)
		name_thread(a, t, ky_source_text(a->source, e, KY_FIELD_NEXT_COMM));
	check(a, ky_timeline_run(t, e->ns));
}

/* An interrupt that wakes a thread is not the work of the thread that it interrupted. */
static bool is_interrupted(const struct ky_timeline *t, const struct ky_texts *names)
{
	uint32_t span = ky_timeline_span(t);

	return span && t->stack.v[t->stack.n - 1].is_pair &&
	       (!strcmp(ky_texts_get(names, span), "interrupt") ||
		       !strcmp(ky_texts_get(names, span), "softirq"));
}

/* A device stands for a thread: its number is below those of threads, and it has a name. */
static uint32_t device_thread(struct account *a, uint32_t host, int64_t device)
{
	uint32_t thread = ky_explain_thread(
		a->x, a->of->is_second, host, KY_DEVICE_TID - (device & UINT32_MAX), -1);
	char name[64];

	if (thread == UINT32_MAX)
		return thread;
	/* As the kernel has it: 20 bits of minor number. */
	snprintf(name, sizeof(name), "block device %" PRId64 ":%" PRId64,
		(device & UINT32_MAX) >> 20, device & 0xfffff);
	a->x->threads.v[thread]->name = ky_texts_add(&a->x->names, name, strlen(name));
	return thread;
}

/* The device whose completed request is the reason of an interrupt, if there is one. */
static uint32_t interrupt_waker(
	struct account *a, const struct ky_source_event *e, uint32_t processor)
{
	const struct ky_processor *p = processor == UINT32_MAX
					       ? NULL
					       : &a->machine.processors.v[processor];

	if (!p || p->block_ns < e->ns - BLOCK_WAKE_NS)
		return UINT32_MAX;
	return device_thread(a, e->host, p->block_device);
}

static void add_waking(
	struct account *a, const struct ky_source_event *e, int64_t waker, uint32_t processor)
{
	struct ky_timeline *t = timeline_of(
		a, e->host, ky_source_number(e, KY_FIELD_WOKEN_TID, 0), -1);
	struct ky_timeline *by = waker > 0 ? timeline_of(a, e->host, waker, -1) : NULL;
	uint32_t device = interrupt_waker(a, e, processor);

	if (by && (device != UINT32_MAX || is_interrupted(by, &a->x->names)))
		by = NULL;
	if (t)
		check(a, ky_timeline_wake(t, e->ns, by ? by->thread : device));
}

static void add_block_done(struct account *a, const struct ky_source_event *e, uint32_t processor)
{
	struct ky_processor *p = &a->machine.processors.v[processor];

	p->block_ns = e->ns;
	p->block_device = ky_source_number(e, KY_FIELD_DEVICE, 0);
}

static uint32_t processor_of(struct account *a, const struct ky_source_event *e)
{
	int64_t cpu = ky_source_number(e, KY_FIELD_CPU, -1);
	uint32_t i = cpu < 0 ? UINT32_MAX : ky_machine_processor(&a->machine, e->host, cpu);

	if (cpu >= 0 && i == UINT32_MAX)
		check(a, -ENOMEM);
	return i;
}

/* If an event of the kernel does not say its thread, that is the one that runs on the processor. */
static int64_t tid_of(struct account *a, const struct ky_source_event *e, uint32_t processor)
{
	int64_t tid = ky_event_tid(e);
	const struct ky_processor *p = processor == UINT32_MAX
					       ? NULL
					       : &a->machine.processors.v[processor];

	if (tid < 0 && p && p->is_known)
		tid = p->thread == UINT32_MAX ? 0 : a->x->threads.v[p->thread]->tid;
	return tid;
}

static void add_event(struct account *a, const struct ky_source_event *e)
{
	uint32_t processor = processor_of(a, e);
	struct ky_timeline *t = NULL;
	int64_t tid;

	if (e->kind == KY_EVENT_SWITCH) {
		if (processor != UINT32_MAX)
			add_switch(a, e, processor);
		return;
	}
	if (e->kind == KY_EVENT_BLOCK_DONE) {
		if (processor != UINT32_MAX)
			add_block_done(a, e, processor);
		return;
	}
	tid = tid_of(a, e, processor);
	if (e->kind == KY_EVENT_WAKING) {
		add_waking(a, e, tid, processor);
		return;
	}
	if (tid > 0 && (t = timeline_of(a, e->host, tid, ky_source_number(e, KY_FIELD_PID, -1)))) {
		name_thread(a, t, ky_source_text(a->source, e, KY_FIELD_PROCNAME));
		add_thread_event(a, t, e);
	} else if (tid < 0) {
		a->of->n_threadless++;
	}
	if (e->kind == KY_EVENT_ASYNC_BEGIN || e->kind == KY_EVENT_ASYNC_END)
		add_async_event(a, t, e);
	/* The state after the event, with all that it began. */
	if (t)
		check(a, ky_timeline_note(t, e->ns));
}

/* --- stages of asynchronous instances --- */

static int compare_ids(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static bool is_chosen_id(const struct account *a, uint64_t id)
{
	const struct ky_instance like = {.id = id, .begin_ns = INT64_MIN}, *key = &like;
	size_t lo = 0, hi = a->by_id.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (compare_ids(&a->by_id.v[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->by_id.n && a->by_id.v[lo]->id == id;
}

static void add_stage_event(struct account *a, const struct ky_source_event *e)
{
	uint64_t id = (uint64_t)ky_source_number(e, KY_FIELD_SPAN, 0);
	int64_t tid = ky_event_tid(e);
	uint32_t thread = ky_explain_thread(
		a->x, a->of->is_second, e->host, tid, ky_source_number(e, KY_FIELD_PID, -1));

	if (e->class->base == a->x->span || !is_chosen_id(a, id))
		return;
	if (e->kind == KY_EVENT_ASYNC_BEGIN) {
		check(a, ky_vec_add(&a->stages, (struct stage){id, e->class->base, thread, thread,
							e->ns, INT64_MAX}));
		return;
	}
	for (size_t i = a->stages.n; i-- > 0;) {
		struct stage *s = &a->stages.v[i];

		if (s->id == id && s->name == e->class->base && s->to == INT64_MAX) {
			s->to = e->ns;
			s->end_thread = thread;
			return;
		}
	}
}

static int compare_stages(const void *a, const void *b)
{
	const struct stage *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to < y->to) - (x->to > y->to);
}

static int read_stages(struct account *a)
{
	struct ky_source_event e;
	int r;

	for (size_t i = 0; i < a->n; i++)
		check(a, ky_vec_add(&a->by_id, a->chosen[i]));
	if (a->error)
		return a->error;
	qsort(a->by_id.v, a->by_id.n, sizeof(struct ky_instance *), compare_ids);
	r = ky_source_start(a->source, KY_SOURCE_ASYNC, 0);
	while (!r && (r = ky_source_next(a->source, &e)) > 0) {
		r = 0;
		if (e.kind != KY_EVENT_LOST)
			add_stage_event(a, &e);
		if (a->error)
			return a->error;
	}
	if (a->stages.n)
		qsort(a->stages.v, a->stages.n, sizeof(*a->stages.v), compare_stages);
	return r;
}

/* --- windows --- */

static void add_window(struct account *a, struct ky_instance *i, uint32_t thread, int64_t from,
	int64_t to, uint32_t prefix, bool is_instance)
{
	struct ky_timeline *t = ky_machine_timeline(&a->machine, thread);
	struct ky_window *w = calloc(1, sizeof(*w));

	if (!t || !w || ky_vec_add(&a->windows, w) < 0) {
		free(w);
		check(a, -ENOMEM);
		return;
	}
	w->instance = i;
	w->thread = thread;
	w->from = from;
	w->to = to;
	w->prefix = prefix;
	w->is_instance = is_instance;
	check(a, ky_vec_add(&t->windows, w));
}

/* Stages that begin within another one are part of it. */
static void add_async_windows(struct account *a, struct ky_instance *i)
{
	int64_t at = i->begin_ns;

	for (size_t k = 0; k < a->stages.n; k++) {
		const struct stage *s = &a->stages.v[k];
		uint32_t c;

		if (s->id != i->id || s->from < at || s->to > i->end_ns)
			continue;
		add_window(a, i, s->thread, at, s->from, KY_ROOT, false);
		c = child(a, KY_ROOT, KY_PART_SPAN, s->name, 0);
		check(a, ky_instance_add(i, c, 1, 0));
		add_window(a, i, s->end_thread, s->from, s->to, c, false);
		at = s->to;
	}
	add_window(a, i, i->end_thread, at, i->end_ns, KY_ROOT, false);
}

static int compare_windows(const void *a, const void *b)
{
	const struct ky_window *x = *(struct ky_window *const *)a;
	const struct ky_window *y = *(struct ky_window *const *)b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to < y->to) - (x->to > y->to);
}

static int add_windows(struct account *a)
{
	if (a->x->is_async) {
		int r = read_stages(a);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < a->n && !a->error; i++) {
		struct ky_instance *instance = a->chosen[i];

		if (a->x->is_async)
			add_async_windows(a, instance);
		else
			add_window(a, instance, instance->thread, instance->begin_ns,
				instance->end_ns, KY_ROOT, true);
	}
	for (size_t i = 0; i < a->machine.timelines.n; i++) {
		struct ky_timeline *t = a->machine.timelines.v[i];

		if (t && t->windows.n)
			qsort(t->windows.v, t->windows.n, sizeof(struct ky_window *),
				compare_windows);
	}
	return a->error;
}

static void deinit(struct account *a)
{
	struct ky_hnode *n, *tmp;
	size_t k;

	ky_htab_foreach(&a->open_async, k, n, tmp)
	{
		free(ky_container_of(n, struct open_async, node));
	}
	ky_htab_deinit(&a->open_async);
	for (size_t i = 0; i < a->windows.n; i++) {
		ky_vec_deinit(&a->windows.v[i]->path);
		ky_vec_deinit(&a->windows.v[i]->seen);
		free(a->windows.v[i]);
	}
	ky_vec_deinit(&a->windows);
	ky_vec_deinit(&a->company);
	ky_vec_deinit(&a->company_of);
	ky_vec_deinit(&a->by_id);
	ky_vec_deinit(&a->stages);
	ky_machine_deinit(&a->machine);
}

static int read_all(struct account *a)
{
	struct ky_source_event e;
	int r = ky_source_start(a->source, KY_SOURCE_ALL, 0);

	while (!r && (r = ky_source_next(a->source, &e)) > 0) {
		r = 0;
		if (e.kind == KY_EVENT_LOST)
			ky_locks_forget(&a->machine.locks);
		else
			add_event(a, &e);
		if (a->error)
			return a->error;
	}
	return r;
}

int ky_account_read(struct ky_explain *x, struct ky_source *s, struct ky_instances *of,
	struct ky_instance **chosen, size_t n)
{
	struct account a = {
		.x = x, .source = s, .of = of, .chosen = chosen, .n = n, .machine.x = x};
	int r;

	/* The root is the first component. */
	check(&a, ky_component_child(&x->components, 0, KY_PART_SPAN, x->span, 0) ? 0 : -ENOMEM);
	r = add_windows(&a);
	if (!r)
		r = read_all(&a);
	for (size_t i = 0; i < n && !r && !a.error; i++) {
		if (!chosen[i]->is_closed)
			close_instance(&a, chosen[i]);
	}
	r = r ? r : a.error ? a.error : x->components.error ? x->components.error : x->names.error;
	deinit(&a);
	return r;
}
