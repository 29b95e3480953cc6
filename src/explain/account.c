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

#include <sys/prctl.h>

#include "explain/accounting.h"

void ky_account_check(struct ky_account *a, int r)
{
	if (r < 0 && !a->error)
		a->error = r;
}

/* --- instances --- */

void ky_account_begin_instance(struct ky_account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *outside)
{
	ky_account_check(a, ky_instance_add(i, KY_ROOT, 1, 0));
	ky_company_open(a, i);
	ky_running_keep(a, i, KY_TRAIT_BEGIN);
	ky_traits_add_begin(a, i, e, outside);
	ky_before_add_traits(a, i, outside ? outside->begun_ns : INT64_MIN);
	ky_repeats_keep(a, i);
}

void ky_account_end_instance(
	struct ky_account *a, struct ky_instance *i, const struct ky_source_event *e)
{
	ky_company_close(a, i);
	ky_running_keep(a, i, KY_TRAIT_END);
	ky_traits_add(a, i, e, KY_TRAIT_END, 0, false);
}

static struct ky_window *begins_window(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	if (e->class->base != a->x->span || a->x->is_async)
		return NULL;
	while (t->next_window < t->windows.n && t->windows.v[t->next_window]->from < e->ns)
		t->next_window++;
	if (t->next_window == t->windows.n || t->windows.v[t->next_window]->from != e->ns)
		return NULL;
	return t->windows.v[t->next_window++];
}

static void begin_span(struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	struct ky_frame f = {.name = e->class->base,
		.begin_ns = e->ns,
		.is_pair = e->kind == KY_EVENT_PAIR_ENTRY,
		.is_of_kernel = e->class->is_kernel,
		.n_outer = t->outer.n};
	struct ky_window *w = f.is_pair ? NULL : begins_window(a, t, e);

	if (e->class->is_library && e->class->known[KY_FIELD_MUTEX])
		f.mutex = ky_locking_lend(a, t, e);
	if (!f.is_pair && f.name == a->x->span && !a->x->is_async) {
		ky_repeats_add(a, e, t->thread, &t->begun_values);
		ky_running_add(a, e, KY_TRAIT_BEGIN, t->thread);
	}
	if (w)
		ky_account_begin_instance(a, w->instance, e, t);
	if (!f.is_pair && f.name == a->x->span)
		t->begun_ns = a->begun_ns = e->ns;
	ky_windows_push(a, t, &f);
	if (f.is_pair)
		return;
	ky_company_begin(a, f.name, t->thread, e->ns);
	ky_traits_push_outer(a, t, e);
	if (w)
		ky_window_open(a, t, w, t->stack.n);
}

/* Time that no event of its threads accounts for is one way, from begin to end. */
static void close_instance(struct ky_account *a, struct ky_instance *i)
{
	static const char ends[] = "(no event of its thread)";
	int64_t rest = i->end_ns - i->begin_ns;

	ky_traits_end_allocations(a, i);
	for (size_t k = 0; k < i->parts.n; k++)
		rest -= i->parts.v[k].ns;
	if (rest) {
		uint32_t name = ky_texts_add(&a->x->names, ends, sizeof(ends) - 1);

		a->x->unseen = name;
		ky_account_check(
			a, ky_instance_add(i, ky_window_child(a, KY_ROOT, KY_PART_WAY, name, name),
				   1, rest));
	}
	ky_account_check(a, ky_instance_close(a->x, i));
}

/* The windows of instances that end with this event. */
static void end_windows(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	for (size_t i = 0; i < t->active.n; i++) {
		struct ky_window *w = t->active.v[i];

		if (!w->is_instance || w->to > e->ns)
			continue;
		ky_account_end_instance(a, w->instance, e);
		close_instance(a, w->instance);
		t->active.v[i--] = t->active.v[--t->active.n];
	}
}

static void end_span(struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	size_t i = t->stack.n;

	if (e->class->base == a->x->span && !a->x->is_async) {
		ky_repeats_end(&t->begun_values, e->ns);
		ky_running_add(a, e, KY_TRAIT_END, t->thread);
	}
	if (e->class->base == a->x->span)
		end_windows(a, t, e);
	while (i-- > 0) {
		if (!t->stack.v[i].is_lock && t->stack.v[i].name == e->class->base) {
			ky_traits_end_inner(a, t, i, e);
			ky_windows_pop(a, t, i, e->ns);
			return;
		}
	}
}

/* --- events of a thread --- */

/*
 * Accounts for the time between the thread's newest event and this one. Within an interrupt, that
 * is not the stretch that the thread's wakes are about.
 */
static void end_stretch(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	const struct ky_frame *interrupt = ky_timeline_interrupt(t);
	const struct ky_wake *wake = !interrupt && (t->wake.is_set || t->late_wake.is_set)
					     ? ky_locking_find_wake(t, e)
					     : NULL;
	int64_t woken;

	woken = wake ? ky_timeline_woken_ns(t, e->ns) : INT64_MIN;
	ky_windows_open(a, t, e->ns);
	for (size_t i = 0; i < t->active.n; i++)
		ky_window_stretch(a, t, t->active.v[i], e->ns, e->class->name, woken);
	if (wake)
		ky_account_charge_condition(
			a, t, wake, KY_MIN(woken, ky_locking_met_ns(wake, e->ns)));
	ky_account_charge_off(a, t, woken);
	for (size_t i = 0; i < t->active.n; i++) {
		struct ky_window *w = t->active.v[i];

		if (!w->is_instance && w->to <= e->ns)
			t->active.v[i--] = t->active.v[--t->active.n];
	}
	t->is_async_new = false;
	t->off.n = interrupt ? interrupt->cut.n_off : 0;
	t->stacks.n = interrupt ? interrupt->cut.n_stacks : 0;
	if (!interrupt)
		t->wake.is_set = t->late_wake.is_set = false;
}

static void set_newest(struct ky_timeline *t, const struct ky_source_event *e)
{
	t->had_event = true;
	t->last_ns = e->ns;
	t->last_name = e->class->name;
}

/* --- interrupts: their own parts of what they interrupt, whose ways keep their ends --- */

#define MAX_OFF ((size_t)1 << 16) /* of a stretch; the next interrupt ends it */

static void begin_interrupt(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	const bool is_full = t->off.n >= MAX_OFF;
	struct ky_cut cut = {.is_set = t->had_event && !is_full};
	size_t n = t->stack.n;

	if (is_full)
		end_stretch(a, t, e);
	cut.is_async_new = t->is_async_new;
	cut.last_ns = t->last_ns;
	cut.last_name = t->last_name;
	cut.n_off = t->off.n;
	cut.n_stacks = t->stacks.n;
	ky_windows_push(a, t,
		&(struct ky_frame){.name = e->class->base,
			.begin_ns = e->ns,
			.is_pair = true,
			.is_interrupt = true,
			.cut = cut,
			.n_outer = t->outer.n});
	if (t->stack.n > n)
		set_newest(t, e);
}

/* Whether a window is open, or begins within the stretch. */
static bool has_window(const struct ky_timeline *t, int64_t ns)
{
	return t->active.n ||
	       (t->next_window < t->windows.n && t->windows.v[t->next_window]->from < ns);
}

/* The innermost one ends with this event, whether it says so or not. */
static void end_interrupt(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	const struct ky_frame f = *ky_timeline_interrupt(t);

	end_stretch(a, t, e);
	ky_windows_pop(a, t, t->stack.n - 1, e->ns);
	set_newest(t, e);
	if (!f.cut.is_set)
		return;
	t->is_async_new = f.cut.is_async_new;
	t->last_ns = f.cut.last_ns;
	t->last_name = f.cut.last_name;
	if (has_window(t, e->ns))
		ky_account_check(a, ky_vec_add(&t->off, (struct ky_off){.from = f.begin_ns,
								.to = e->ns,
								.kind = KY_PART_SPAN,
								.thread = UINT32_MAX}));
}

static bool is_in_interrupt(const struct ky_timeline *t, uint32_t name)
{
	for (size_t i = t->stack.n; i-- > 0 && t->stack.v[i].is_interrupt;) {
		if (t->stack.v[i].name == name)
			return true;
	}
	return false;
}

/* An end without a begin is none; an end that is missing is before the next end around it. */
static void add_interrupt_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	if (e->kind == KY_EVENT_PAIR_ENTRY) {
		begin_interrupt(a, t, e);
		return;
	}
	for (bool is_end = false; !is_end && is_in_interrupt(t, e->class->base);) {
		is_end = ky_timeline_interrupt(t)->name == e->class->base;
		end_interrupt(a, t, e);
	}
}

/* A thread does nothing of its own in an interrupt. */
static bool is_of_interrupt(const struct ky_source_event *e)
{
	return e->class->is_kernel && e->kind != KY_EVENT_PAIR_ENTRY &&
	       e->kind != KY_EVENT_PAIR_EXIT && e->kind != KY_EVENT_SPAN_BEGIN &&
	       e->kind != KY_EVENT_SPAN_END;
}

/* libkymo asks for the thread's name by a system call, which is none of the program's. */
static bool is_tracers_call(struct ky_timeline *t, const struct ky_source_event *e)
{
	bool is_asking = t->is_asking_name;

	if (!e->class->is_prctl)
		return false;
	if (e->kind == KY_EVENT_PAIR_ENTRY)
		is_asking = ky_source_number(e, KY_FIELD_OPTION, -1) == PR_GET_NAME;
	t->is_asking_name = is_asking && e->kind == KY_EVENT_PAIR_ENTRY;
	return is_asking;
}

static void add_thread_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	ky_account_check(a, ky_timeline_run(t, e->ns));
	if (is_tracers_call(t, e))
		return;
	if (e->class->is_interrupt) {
		add_interrupt_event(a, t, e);
		return;
	}
	while (ky_timeline_interrupt(t) && !is_of_interrupt(e))
		end_interrupt(a, t, e);
	end_stretch(a, t, e);
	for (size_t i = 0; i < t->active.n && !e->class->is_lock && !e->class->is_alloc; i++)
		ky_traits_add_inner(a, t->active.v[i], e);
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
		ky_locking_add_event(a, t, e);
		break;
	case KY_EVENT_RAISE:
		ky_scheduler_raise(a, t, e);
		break;
	case KY_EVENT_ALLOC:
		for (size_t i = 0; i < t->active.n; i++)
			ky_traits_add_allocation(t->active.v[i]->instance, e);
		break;
	default:
		break;
	}
	set_newest(t, e);
}

struct ky_timeline *ky_account_timeline(
	struct ky_account *a, uint32_t host, int64_t tid, int64_t pid)
{
	uint32_t thread = ky_explain_thread(a->x, a->of->is_second, host, tid, pid);
	struct ky_timeline *t = thread == UINT32_MAX ? NULL
						     : ky_machine_timeline(&a->machine, thread);

	ky_account_check(a, t ? 0 : -ENOMEM);
	return t;
}

void ky_account_name_thread(struct ky_account *a, const struct ky_timeline *t, uint32_t name)
{
	if (t && name)
		a->x->threads.v[t->thread]->name = name;
}

static void add_event(struct ky_account *a, const struct ky_source_event *e)
{
	uint32_t processor = ky_scheduler_processor(a, e);
	struct ky_timeline *t = NULL;
	int64_t tid;

	tid = ky_scheduler_tid(a, e, processor);
	if (ky_scheduler_add_event(a, e, tid, processor))
		return;
	if (tid > 0 &&
		(t = ky_account_timeline(a, e->host, tid, ky_source_number(e, KY_FIELD_PID, -1)))) {
		ky_account_name_thread(a, t, ky_source_text(a->source, e, KY_FIELD_PROCNAME));
		if (e->kind == KY_EVENT_SAMPLE) {
			ky_samples_add_event(a, t, e);
			return;
		}
		if (!e->class->is_kernel)
			a->x->threads.v[a->x->threads.v[t->thread]->process]->is_program = true;
		add_thread_event(a, t, e);
	} else if (tid < 0 && !e->class->is_kernel) {
		a->of->n_threadless++;
	}
	if (e->kind == KY_EVENT_ASYNC_BEGIN || e->kind == KY_EVENT_ASYNC_END)
		ky_async_add_event(a, t, e);
	ky_before_add_event(a, t, e);
	/* The state after the event, with all that it began. */
	if (t)
		ky_account_check(a, ky_timeline_note(t, e->ns));
}

static void deinit_account(struct ky_account *a)
{
	ky_async_deinit(a);
	for (size_t i = 0; i < a->windows.n; i++) {
		ky_vec_deinit(&a->windows.v[i]->path);
		ky_vec_deinit(&a->windows.v[i]->seen);
		free(a->windows.v[i]);
	}
	ky_vec_deinit(&a->windows);
	ky_vec_deinit(&a->company);
	ky_vec_deinit(&a->company_of);
	ky_running_deinit(a);
	ky_repeats_deinit(a);
	ky_vec_deinit(&a->by_id);
	ky_vec_deinit(&a->stages);
	ky_samples_end(a);
	ky_machine_deinit(&a->machine);
}

static int read_all(struct ky_account *a)
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
	struct ky_account a = {.x = x,
		.source = s,
		.of = of,
		.chosen = chosen,
		.n = n,
		.machine.x = x,
		.begun_ns = INT64_MIN};
	int r;

	/* The root is the first component. */
	ky_account_check(
		&a, ky_component_child(&x->components, 0, KY_PART_SPAN, x->span, 0) ? 0 : -ENOMEM);
	r = ky_windows_make(&a);
	if (!r)
		r = read_all(&a);
	if (!r)
		r = ky_before_keep_rare(&a);
	for (size_t i = 0; i < n && !r && !a.error; i++) {
		if (!chosen[i]->is_closed)
			close_instance(&a, chosen[i]);
	}
	r = r ? r : a.error ? a.error : x->components.error ? x->components.error : x->names.error;
	deinit_account(&a);
	return r;
}
