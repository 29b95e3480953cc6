/* SPDX-License-Identifier: MIT */
/*
 * The state of pass 2 (account.c), which its parts share, and the functions of each part. Errors
 * stick in it: ky_account_check().
 */
#ifndef EXPLAIN_ACCOUNTING_H
#define EXPLAIN_ACCOUNTING_H

#include "explain/account.h"
#include "explain/timeline.h"

struct ky_window {
	struct ky_instance *instance;
	uint32_t thread;
	uint32_t giver; /* the thread that had an asynchronous instance before */
	int64_t from, to;
	uint32_t prefix;       /* component that the window's time belongs to */
	bool is_instance;      /* it begins and ends with the instance's own events */
	size_t strip;	       /* frames of the stack that are outside of it */
	KY_VEC(uint32_t) path; /* components: the prefix, and of each frame above strip */
	KY_VEC(uint32_t) seen; /* names of events whose fields were taken */
};

#define KY_MAX_MARKS 48 /* names of events that an instance may follow */

/* The newest event of the application, or end of a span, of one name in one process. */
struct ky_mark {
	uint32_t name;
	uint32_t process; /* UINT32_MAX: not known */
	int64_t ns;
	struct ky_fact counter; /* NONE: it is no counter */
};

#define KY_N_ENDED 16

#define KY_N_DOINGS 64

/* The newest names of their kind. */
struct ky_doing {
	uint32_t inner, around, name;
};

/* Spans of one name, of all threads. */
struct ky_company_span {
	size_t n_open;
	int64_t since, total;
	/* the newest that ended, by n_ended % KY_N_ENDED */
	struct {
		uint32_t thread;
		int64_t from, to;
	} ended[KY_N_ENDED];
	size_t n_ended;
};

/* An asynchronous span within an asynchronous instance. */
struct ky_stage {
	uint64_t id;
	uint32_t name, thread, end_thread;
	int64_t from, to;
};

struct ky_account {
	struct ky_explain *x;
	struct ky_source *source;
	struct ky_instances *of;
	struct ky_instance **chosen; /* in order of their begins */
	size_t n;
	struct ky_machine machine;
	KY_VEC(struct ky_window *) windows; /* owned */
	struct ky_mark marks[KY_MAX_MARKS];
	size_t n_marks;
	int64_t begun_ns; /* the newest begin of an instance; INT64_MIN: none */
	KY_VEC(struct ky_company_span) company; /* by index in x->company */
	KY_VEC(uint32_t) company_of;		/* by name: index + 1 in x->company */
	KY_VEC(struct ky_instance *) by_id; /* asynchronous ones, sorted by number, then begin */
	KY_VEC(struct ky_stage) stages;
	struct ky_htab open_async;
	KY_VEC(int64_t) gaps;		     /* between CPU samples of one thread */
	struct ky_doing doings[KY_N_DOINGS]; /* by inner % KY_N_DOINGS */
	struct ky_htab functions;	     /* that samples are in, by process and address */
	int error;
};

/* --- account.c --- */

void ky_account_check(struct ky_account *a, int r);
/* NULL without memory. */
struct ky_timeline *ky_account_timeline(
	struct ky_account *a, uint32_t host, int64_t tid, int64_t pid);
void ky_account_name_thread(struct ky_account *a, const struct ky_timeline *t, uint32_t name);
void ky_account_begin_instance(struct ky_account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *outside);
void ky_account_end_instance(
	struct ky_account *a, struct ky_instance *i, const struct ky_source_event *e);

/* --- windows.c --- */

/* All windows of the chosen instances, in their timelines. 0 or a negative errno. */
int ky_windows_make(struct ky_account *a);
/* NULL without memory. */
struct ky_window *ky_windows_new(struct ky_account *a, struct ky_instance *i, uint32_t thread,
	int64_t from, int64_t to, uint32_t prefix, bool is_instance);
/* Whether that thread wakes the window's only by giving it the instance. */
bool ky_window_is_given(struct ky_account *a, const struct ky_window *w, uint32_t waker);
/* Opens those that begin within the stretch that ends now. */
void ky_windows_open(struct ky_account *a, struct ky_timeline *t, int64_t ns);
void ky_window_open(struct ky_account *a, struct ky_timeline *t, struct ky_window *w, size_t strip);
/*
 * Adds the stretch from the thread's newest event to this one, whose name is b. Until condition_ns,
 * the thread waits for a condition; INT64_MIN: it does not.
 */
void ky_window_stretch(struct ky_account *a, struct ky_timeline *t, struct ky_window *w, int64_t ns,
	uint32_t b, int64_t condition_ns);
void ky_windows_push(struct ky_account *a, struct ky_timeline *t, const struct ky_frame *f);
/* Closes the frames from index n on. */
void ky_windows_pop(struct ky_account *a, struct ky_timeline *t, size_t n, int64_t ns);
uint32_t ky_window_child(
	struct ky_account *a, uint32_t parent, enum ky_component_kind kind, uint32_t n, uint32_t m);
uint32_t ky_window_top(const struct ky_window *w);

/* --- samples.c --- */

void ky_samples_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* Those of the stretch that ends now, whose component is known. */
void ky_samples_take(
	struct ky_account *a, const struct ky_timeline *t, struct ky_window *w, uint32_t component);
void ky_samples_end(struct ky_account *a);

/* --- company.c --- */

void ky_company_begin(struct ky_account *a, uint32_t name, uint32_t thread, int64_t ns);
/* thread, from: where and when it began; UINT32_MAX, ns: not known. */
void ky_company_end(struct ky_account *a, uint32_t name, uint32_t thread, int64_t from, int64_t ns);
void ky_company_open(struct ky_account *a, struct ky_instance *i);
void ky_company_close(struct ky_account *a, struct ky_instance *i);

/* --- traits.c --- */

/* Of two facts with one key, the first is kept. */
void ky_traits_add_fact(
	struct ky_account *a, struct ky_instance *i, struct ky_trait_key key, struct ky_fact fact);
/* Fields of the event, or its contexts. */
void ky_traits_add(struct ky_account *a, struct ky_instance *i, const struct ky_source_event *e,
	enum ky_trait_kind kind, uint32_t name, bool contexts);
void ky_traits_add_begin(struct ky_account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *t);
/* The first event of each name inside; of spans, until a longer one ends. */
void ky_traits_add_inner(
	struct ky_account *a, struct ky_window *w, const struct ky_source_event *e);
/* Keeps the size of the largest allocation; at the end of the instance it becomes a fact. */
void ky_traits_add_allocation(struct ky_instance *i, const struct ky_source_event *e);
void ky_traits_end_allocations(struct ky_account *a, struct ky_instance *i);
/* The span of that index in the stack ends: keeps its fields if it is the longest of its name. */
void ky_traits_end_inner(struct ky_account *a, const struct ky_timeline *t, size_t n,
	const struct ky_source_event *e);
/* Remembers the fields of a span's begin for instances that begin inside. */
void ky_traits_push_outer(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);

/* --- before.c --- */

void ky_before_add_event(
	struct ky_account *a, const struct ky_timeline *t, const struct ky_source_event *e);
/* thread_begun_ns: the begin of the instance before in the same thread, or INT64_MIN. */
void ky_before_add_traits(struct ky_account *a, struct ky_instance *i, int64_t thread_begun_ns);

/* --- charges.c --- */

void ky_account_charge_condition(
	struct ky_account *a, struct ky_timeline *t, const struct ky_wake *wake, int64_t ns);
/* Of what is off the processor, the part after from. */
void ky_account_charge_off(struct ky_account *a, struct ky_timeline *t, int64_t from);
/* held: the mutex, as the process knows it that held it. */
void ky_account_charge_lock(struct ky_account *a, const struct ky_timeline *t,
	const struct ky_mutex *mutex, const struct ky_mutex *held, int64_t from, int64_t to);

/* --- locking.c --- */

void ky_locking_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* A wait for a condition begins: returns the mutex, or NULL without memory. */
struct ky_mutex *ky_locking_lend(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* The end of a wait for a condition that this event shows, or NULL. */
const struct ky_wake *ky_locking_find_wake(
	const struct ky_timeline *t, const struct ky_source_event *e);
/* When the condition was met that a thread waited for until then. */
int64_t ky_locking_met_ns(const struct ky_wake *wake, int64_t ns);

/* --- async.c and stages.c --- */

void ky_async_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
void ky_async_deinit(struct ky_account *a);
int ky_stages_read(struct ky_account *a);
void ky_stages_add_windows(struct ky_account *a, struct ky_instance *i);

/* --- scheduler.c --- */

/* The index of the event's processor, or UINT32_MAX. */
uint32_t ky_scheduler_processor(struct ky_account *a, const struct ky_source_event *e);
/* If an event of the kernel has no thread, that is the one that runs on the processor. */
int64_t ky_scheduler_tid(struct ky_account *a, const struct ky_source_event *e, uint32_t processor);
void ky_scheduler_raise(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* Returns false for events that are not the scheduler's or a block device's. */
bool ky_scheduler_add_event(
	struct ky_account *a, const struct ky_source_event *e, int64_t tid, uint32_t processor);

#endif
