/* SPDX-License-Identifier: MIT */
/* Windows of instances, and the components of the stretches in them. */
#include "explain/accounting.h"

struct ky_window *ky_windows_new(struct ky_account *a, struct ky_instance *i, uint32_t thread,
	int64_t from, int64_t to, uint32_t prefix, bool is_instance)
{
	struct ky_timeline *t = ky_machine_timeline(&a->machine, thread);
	struct ky_window *w = calloc(1, sizeof(*w));

	if (!t || !w || ky_vec_add(&a->windows, w) < 0) {
		free(w);
		ky_account_check(a, -ENOMEM);
		return NULL;
	}
	w->instance = i;
	w->thread = w->giver = thread;
	w->from = from;
	w->to = to;
	w->prefix = prefix;
	w->is_instance = is_instance;
	ky_account_check(a, ky_vec_add(&t->windows, w));
	return w;
}

bool ky_window_is_given(struct ky_account *a, const struct ky_window *w, uint32_t waker)
{
	const struct ky_timeline *t = w->giver == waker && w->giver != w->thread
					      ? ky_machine_timeline(&a->machine, waker)
					      : NULL;

	return t && !ky_timeline_span_at(t, w->from);
}

static int compare_windows(const void *a, const void *b)
{
	const struct ky_window *x = *(struct ky_window *const *)a;
	const struct ky_window *y = *(struct ky_window *const *)b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to < y->to) - (x->to > y->to);
}

int ky_windows_make(struct ky_account *a)
{
	if (a->x->is_async) {
		int r = ky_stages_read(a);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < a->n && !a->error; i++) {
		struct ky_instance *instance = a->chosen[i];

		if (a->x->is_async)
			ky_stages_add_windows(a, instance);
		else
			ky_windows_new(a, instance, instance->thread, instance->begin_ns,
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

/* --- stretches --- */

uint32_t ky_window_child(
	struct ky_account *a, uint32_t parent, enum ky_component_kind kind, uint32_t n, uint32_t m)
{
	return ky_component_child(&a->x->components, parent, kind, n, m);
}

static void count_part(struct ky_account *a, struct ky_window *w, uint32_t component)
{
	ky_account_check(a, ky_instance_add(w->instance, component, 1, 0));
}

uint32_t ky_window_top(const struct ky_window *w)
{
	return w->path.v[w->path.n - 1];
}

/* The component of the frame that was pushed last. */
static void push_path(struct ky_account *a, struct ky_window *w, const struct ky_frame *f)
{
	uint32_t c = ky_window_child(
		a, ky_window_top(w), f->is_lock ? KY_PART_LOCK : KY_PART_SPAN, f->name, 0);

	ky_account_check(a, ky_vec_add(&w->path, c));
	count_part(a, w, c);
}

void ky_window_open(struct ky_account *a, struct ky_timeline *t, struct ky_window *w, size_t strip)
{
	w->strip = strip;
	w->path.n = 0;
	ky_account_check(a, ky_vec_add(&w->path, w->prefix));
	ky_account_check(a, ky_vec_add(&t->active, w));
	for (size_t i = strip; i < t->stack.n && !a->error; i++)
		push_path(a, w, &t->stack.v[i]);
}

/* Each event of a thread is added to all of its open windows: of more, its time is not known. */
#define KY_MAX_ACTIVE 512

void ky_windows_open(struct ky_account *a, struct ky_timeline *t, int64_t ns)
{
	while (t->next_window < t->windows.n && t->windows.v[t->next_window]->from < ns) {
		struct ky_window *w = t->windows.v[t->next_window++];

		/* The begin of an instance that is a window is found by its event. */
		if (!w->is_instance && t->active.n < KY_MAX_ACTIVE)
			ky_window_open(a, t, w, 0);
	}
}

uint32_t ky_window_off(struct ky_account *a, const struct ky_window *w, const struct ky_off *off)
{
	static const char stopped[] = "stopped";

	return ky_window_child(a, ky_window_top(w), off->kind,
		off->is_stopped ? ky_texts_add(&a->x->names, stopped, sizeof(stopped) - 1) : 0, 0);
}

/* The part from begin on, where the thread did not run; count: of the stretch. */
static void add_off(struct ky_account *a, struct ky_window *w, const struct ky_off *off,
	int64_t begin, uint32_t way_a, uint32_t way_b)
{
	int64_t from = KY_MAX(off->from, begin), to = KY_MIN(off->to, w->to);
	uint32_t c;

	if (from >= to || off->kind == KY_PART_SPAN)
		return;
	c = ky_window_off(a, w, off);
	count_part(a, w, c);
	ky_account_check(a, ky_instance_add_time(w->instance,
				    ky_window_child(a, c, KY_PART_WAY, way_a, way_b), from, to, 0));
}

static int64_t off_within(
	const struct ky_timeline *t, int64_t from, int64_t to, bool is_interrupts_alone)
{
	int64_t ns = 0;

	for (size_t i = ky_timeline_first_off(t); i < t->off.n; i++) {
		int64_t begin = KY_MAX(t->off.v[i].from, from), end = KY_MIN(t->off.v[i].to, to);

		if (begin < end && (!is_interrupts_alone || t->off.v[i].kind == KY_PART_SPAN))
			ns += end - begin;
	}
	return ns;
}

/*
 * The only asynchronous span that is open in the thread is what it works on. In a loop that has
 * several open, none is. Stages of the instance itself have their place already.
 */
static uint32_t async_part(struct ky_account *a, const struct ky_timeline *t, struct ky_window *w)
{
	const struct ky_open_async *async = ky_timeline_async(t);
	uint32_t c = ky_window_top(w);

	if (!async || ky_timeline_is_locking(t) || async->name == a->x->span ||
		(a->x->is_async && async->id == w->instance->id))
		return c;
	c = ky_window_child(a, c, KY_PART_SPAN, async->name, 0);
	if (t->is_async_new || t->last_ns < w->from)
		count_part(a, w, c);
	return c;
}

/* The part of the stretch in which it waits for a condition. */
static void add_condition(struct ky_account *a, const struct ky_timeline *t, struct ky_window *w,
	uint32_t parent, int64_t from, int64_t to, uint32_t b)
{
	if (from >= to)
		return;
	parent = ky_window_child(a, parent, KY_PART_CONDITION, 0, 0);
	count_part(a, w, parent);
	ky_account_check(a, ky_instance_add_time(w->instance,
				    ky_window_child(a, parent, KY_PART_WAY, t->last_name, b), from,
				    to, off_within(t, from, to, true)));
}

void ky_window_stretch(struct ky_account *a, struct ky_timeline *t, struct ky_window *w, int64_t ns,
	uint32_t b, int64_t condition_ns)
{
	int64_t from = KY_MAX(t->last_ns, w->from), to = KY_MIN(ns, w->to), off;
	int64_t met = KY_MAX(from, KY_MIN(condition_ns, to));
	uint32_t parent, name = t->last_name;

	if (!t->had_event || from > to)
		return;
	parent = async_part(a, t, w);
	add_condition(a, t, w, parent, from, met, b);
	for (size_t i = ky_timeline_first_off(t); i < t->off.n && !ky_timeline_is_locking(t); i++)
		add_off(a, w, &t->off.v[i], met, name, b);
	off = off_within(t, met, to, ky_timeline_is_locking(t));
	parent = ky_window_child(a, parent, KY_PART_WAY, name, b);
	ky_account_check(a, ky_instance_add_time(w->instance, parent, met, to, off));
	ky_samples_take(a, t, w, parent);
}

/* --- frames --- */

/* "db:query;read()"; an interrupt is not what the span does. */
static uint32_t name_doing(
	struct ky_account *a, const struct ky_timeline *t, const struct ky_frame *f)
{
	const char *name = ky_texts_get(&a->x->names, f->name);
	struct ky_doing *d = &a->doings[f->name % KY_N_DOINGS];
	uint32_t around = 0;
	char text[KY_TEXTS_LENGTH];

	for (size_t i = t->stack.n; i-- > 0 && !around;)
		around = t->stack.v[i].is_pair ? 0 : t->stack.v[i].name;
	if (!f->is_pair || !around || !strcmp(name, "interrupt") || !strcmp(name, "softirq"))
		return f->name;
	if (d->inner != f->name || d->around != around) {
		snprintf(text, sizeof(text), "%s;%s", ky_texts_get(&a->x->names, around), name);
		*d = (struct ky_doing){
			f->name, around, ky_texts_add(&a->x->names, text, strlen(text))};
	}
	return d->name;
}

void ky_windows_push(struct ky_account *a, struct ky_timeline *t, const struct ky_frame *f)
{
	struct ky_frame new = *f;

	if (t->stack.n >= (size_t)16 * KY_MAX_DEPTH)
		return;
	new.doing = name_doing(a, t, f);
	ky_account_check(a, ky_vec_add(&t->stack, new));
	for (size_t i = 0; i < t->active.n && !a->error; i++)
		push_path(a, t->active.v[i], f);
}

void ky_windows_pop(struct ky_account *a, struct ky_timeline *t, size_t n, int64_t ns)
{
	for (size_t i = t->stack.n; i-- > n;) {
		const struct ky_frame *f = &t->stack.v[i];

		if (!f->is_lock && !f->is_pair)
			ky_company_end(a, f->name, t->thread, f->begin_ns, ns);
		if (!f->is_lock && f->mutex)
			ky_mutex_take_back(f->mutex, t->thread, ns);
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
