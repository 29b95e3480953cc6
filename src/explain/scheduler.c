/* SPDX-License-Identifier: MIT */
/* Events of the kernel that say which thread runs where, and who woke it. */
#include <inttypes.h>

#include "explain/account.h"
#include "explain/accounting.h"

#define BLOCK_WAKE_NS 100000 /* a completed request wakes those that wait for it so soon */
/* Bits of prev_state. */
#define UNINTERRUPTIBLE 2
#define STOPPED		4
#define TRACED		8 /* a debugger stops it */
/* Numbers of soft interrupts. */
#define NET_TX 2
#define NET_RX 3

/* Stands for all threads whose switches were not recorded. */
static uint32_t others_thread(struct ky_account *a, uint32_t host)
{
	static const char name[] = "other programs";
	uint32_t thread = ky_explain_thread(a->x, a->of->is_second, host, KY_OTHERS_TID, -1);

	a->x->has_others = true;
	if (thread != UINT32_MAX)
		a->x->threads.v[thread]->name = ky_texts_add(&a->x->names, name, sizeof(name) - 1);
	return thread;
}

/*
 * A trace of some processes has the switches from and to them. If another thread leaves the
 * processor than the one that came last, it is not known who ran meanwhile.
 */
static void check_gap(
	struct ky_account *a, struct ky_processor *p, uint32_t host, const struct ky_timeline *prev)
{
	if (!p->history.n || p->thread == (prev ? prev->thread : UINT32_MAX))
		return;
	if (p->others == UINT32_MAX)
		p->others = others_thread(a, host);
	p->history.v[p->history.n - 1].thread = p->others;
}

/* A thread may run without a switch that says so; tasks of number 0 are idle. */
static void add_switch(struct ky_account *a, const struct ky_source_event *e, uint32_t processor)
{
	int64_t prev = ky_source_number(e, KY_FIELD_PREV_TID, 0);
	int64_t next = ky_source_number(e, KY_FIELD_NEXT_TID, 0);
	int64_t state = ky_source_number(e, KY_FIELD_PREV_STATE, 0);
	struct ky_processor *p = &a->machine.processors.v[processor];
	struct ky_timeline *t = prev > 0 ? ky_account_timeline(a, e->host, prev, -1) : NULL;

	p->is_known = true;
	check_gap(a, p, e->host, t);
	if (t) {
		ky_account_check(a, ky_timeline_run(t, e->ns));
		ky_account_check(
			a, ky_timeline_leave(t, e->ns, state == 0 || state >= 256, processor));
		t->is_firm = state & UNINTERRUPTIBLE;
		t->is_stopped = state < 256 && state & (STOPPED | TRACED);
	}
	t = next > 0 ? ky_account_timeline(a, e->host, next, -1) : NULL;
	ky_account_check(a, ky_processor_switch(p, e->ns, t ? t->thread : UINT32_MAX));
	if (!t)
		return;
	/* A child has its parent's name until it gives itself another. */
	ky_account_name_thread(a, t, ky_source_text(a->source, e, KY_FIELD_NEXT_COMM));
	ky_account_check(a, ky_timeline_run(t, e->ns));
}

static bool is_hard(const struct ky_frame *f, const struct ky_texts *names)
{
	return f->is_pair && !strcmp(ky_texts_get(names, f->name), "interrupt");
}

static bool is_soft(const struct ky_frame *f, const struct ky_texts *names)
{
	return f->is_pair && !strcmp(ky_texts_get(names, f->name), "softirq");
}

/* A call of the kernel; --pair may have made a span of its events. */
static bool is_call(const struct ky_frame *f, const struct ky_texts *names)
{
	return (f->is_pair || f->is_of_kernel) && !is_hard(f, names) && !is_soft(f, names);
}

void ky_scheduler_raise(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e)
{
	const struct ky_frame *f = t->stack.n ? &t->stack.v[t->stack.n - 1] : NULL;
	int64_t vec = ky_source_number(e, KY_FIELD_VEC, -1);

	if (f && is_call(f, &a->x->names) && (vec == NET_TX || vec == NET_RX))
		t->net_raise_ns = e->ns;
}

/*
 * An interrupt that wakes a thread is not the work of the thread that it interrupted. But a thread
 * that sends to its own host does this work itself: in its system call, it raises the soft
 * interrupt that delivers. The trace has no interrupts of threads that are not followed.
 */
static bool is_interrupted(
	const struct ky_timeline *t, const struct ky_source_event *e, const struct ky_texts *names)
{
	const struct ky_frame *f = t->stack.n ? &t->stack.v[t->stack.n - 1] : NULL;

	if (!t->had_event)
		return ky_source_number(e, KY_FIELD_IN_INTERRUPT, 0);
	if (!f || !is_soft(f, names))
		return f && is_hard(f, names);
	return t->stack.n < 2 || !is_call(&f[-1], names) || t->net_raise_ns < f[-1].begin_ns;
}

/*
 * A thread that sleeps for a time is woken by the timer's interrupt, which is not the work of the
 * thread that runs then. A trace of some processes does not have that interrupt.
 */
static bool sleeps(const struct ky_timeline *t, const struct ky_texts *names)
{
	uint32_t span = ky_timeline_span(t);
	const char *name;

	if (!span || !t->stack.v[t->stack.n - 1].is_pair)
		return false;
	name = ky_texts_get(names, span);
	return !strcmp(name, "nanosleep()") || !strcmp(name, "clock_nanosleep()");
}

/* A device stands for a thread: its number is below those of threads, and it has a name. */
static uint32_t device_thread(struct ky_account *a, uint32_t host, int64_t device)
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

/*
 * The device to which the thread gave a request in the call in which it waits. A trace of some
 * processes has few completions: they come in interrupts of whichever thread runs then.
 */
static uint32_t requested_device(struct ky_account *a, uint32_t host, const struct ky_timeline *t)
{
	const struct ky_frame *f = t->stack.n ? &t->stack.v[t->stack.n - 1] : NULL;

	if (!t->is_off || !t->is_firm || !t->block_ns || (f && t->block_ns < f->begin_ns))
		return UINT32_MAX;
	return device_thread(a, host, t->block_device);
}

/* The device whose completed request is the reason of an interrupt, if there is one. */
static uint32_t interrupt_waker(
	struct ky_account *a, const struct ky_source_event *e, uint32_t processor)
{
	const struct ky_processor *p = processor == UINT32_MAX
					       ? NULL
					       : &a->machine.processors.v[processor];

	if (!p || p->block_ns < e->ns - BLOCK_WAKE_NS)
		return UINT32_MAX;
	return device_thread(a, e->host, p->block_device);
}

static void add_waking(
	struct ky_account *a, const struct ky_source_event *e, int64_t waker, uint32_t processor)
{
	struct ky_timeline *t = ky_account_timeline(
		a, e->host, ky_source_number(e, KY_FIELD_WOKEN_TID, 0), -1);
	struct ky_timeline *by = waker > 0 ? ky_account_timeline(a, e->host, waker, -1) : NULL;
	uint32_t device = interrupt_waker(a, e, processor);

	if (by && (device != UINT32_MAX || is_interrupted(by, e, &a->x->names) ||
			  (t && sleeps(t, &a->x->names))))
		by = NULL;
	if (t && !by && device == UINT32_MAX)
		device = requested_device(a, e->host, t);
	if (t)
		ky_account_check(a, ky_timeline_wake(t, e->ns, by ? by->thread : device));
}

static void add_block_begin(struct ky_account *a, const struct ky_source_event *e, int64_t tid)
{
	struct ky_timeline *t = tid > 0 ? ky_account_timeline(a, e->host, tid, -1) : NULL;

	if (!t)
		return;
	t->block_ns = e->ns;
	t->block_device = ky_source_number(e, KY_FIELD_DEVICE, 0);
}

static void add_block_done(
	struct ky_account *a, const struct ky_source_event *e, uint32_t processor)
{
	struct ky_processor *p = &a->machine.processors.v[processor];

	p->block_ns = e->ns;
	p->block_device = ky_source_number(e, KY_FIELD_DEVICE, 0);
}

uint32_t ky_scheduler_processor(struct ky_account *a, const struct ky_source_event *e)
{
	int64_t cpu = ky_source_number(e, KY_FIELD_CPU, -1);
	uint32_t i = cpu < 0 ? UINT32_MAX : ky_machine_processor(&a->machine, e->host, cpu);

	if (cpu >= 0 && i == UINT32_MAX)
		ky_account_check(a, -ENOMEM);
	return i;
}

int64_t ky_scheduler_tid(struct ky_account *a, const struct ky_source_event *e, uint32_t processor)
{
	int64_t tid = ky_event_tid(e);
	const struct ky_processor *p = processor == UINT32_MAX
					       ? NULL
					       : &a->machine.processors.v[processor];

	if (tid < 0 && p && p->is_known)
		tid = p->thread == UINT32_MAX ? 0 : a->x->threads.v[p->thread]->tid;
	return tid;
}

bool ky_scheduler_add_event(
	struct ky_account *a, const struct ky_source_event *e, int64_t tid, uint32_t processor)
{
	bool is_known = processor != UINT32_MAX;

	switch (e->kind) {
	case KY_EVENT_SWITCH:
		if (is_known)
			add_switch(a, e, processor);
		return true;
	case KY_EVENT_BLOCK_DONE:
		if (is_known)
			add_block_done(a, e, processor);
		return true;
	case KY_EVENT_WAKING:
		add_waking(a, e, tid, processor);
		return true;
	case KY_EVENT_BLOCK_BEGIN:
		add_block_begin(a, e, tid);
		return false;
	default:
		return false;
	}
}
