/* SPDX-License-Identifier: MIT */
/*
 * The state of pass 2 (account.c), which its parts share, and the functions of each part. Errors
 * stick in `error`, by ky_account_check(): functions that return nothing report them there alone.
 */
#ifndef EXPLAIN_ACCOUNTING_H
#define EXPLAIN_ACCOUNTING_H

#include "explain/timeline.h"

struct ky_window {
	struct ky_instance *instance;
	uint32_t thread;
	uint32_t giver; /* the thread that had an asynchronous instance before */
	int64_t from, to;
	uint32_t prefix;  /* component that the window's time belongs to */
	bool is_instance; /* it begins and ends with the instance's own events */
	size_t strip;	  /* how many frames of the stack, from its bottom, are outside of it */
	KY_VEC(uint32_t) path; /* components: the prefix, and of each frame above strip */
	KY_VEC(uint32_t) seen; /* names of events whose fields were taken */
};

#define KY_MAX_MARKS 48 /* names of events that an instance may follow */

/* The newest event of the application, or end of a span, of one name in one process. */
struct ky_before_mark {
	uint32_t name;
	uint32_t process; /* UINT32_MAX: not known */
	int64_t ns, first_ns;
	size_t n;
	struct ky_fact counter; /* NONE: it is no counter */
};

#define KY_N_ENDED 16

#define KY_N_DOINGS 64

/* The newest names of their kind. */
struct ky_doing {
	uint32_t inner, around, name;
};

#define KY_N_BEGUN 16

/* Spans of one name, of all threads. */
struct ky_company_span {
	size_t n_open;
	int64_t since, total;
	int64_t changed_ns;	   /* the newest begin or end */
	double each_ns;		   /* the sum of the times of each, until then */
	int64_t begun[KY_N_BEGUN]; /* when the newest began, by n_begun % KY_N_BEGUN */
	uint64_t n_begun;
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

#define KY_MAX_RUNNING 16 /* fields of begins and ends whose numbers are added up */

struct ky_running {
	enum ky_trait_kind kind; /* BEGIN or END */
	uint32_t field, key;
	double all;
	KY_VEC(double) threads; /* by number of the thread */
};

/* Whether a value came before. */
enum ky_repeat {
	KY_REPEAT_UNKNOWN, /* too many values came */
	KY_REPEAT_FIRST,
	KY_REPEAT_OTHER, /* it came, but not in the instance before */
	KY_REPEAT_SAME,	 /* it came in the instance before */
};

/* The instances with one value of a field of their begin. */
struct ky_value_sums {
	double n;
	double sums[KY_MAX_RUNNING]; /* of numbers of begins, by index in `running` */
};

struct ky_values_seen;

/* A field, and its value in the newest begin. */
struct ky_field_repeat {
	uint32_t field, key;
	enum ky_repeat in_process, in_thread;
	bool has_age;
	int64_t age_ns; /* since the value came before in the process, or its instance ended */
	struct ky_seen_value *value; /* borrowed; NULL: not known */
	struct ky_value_sums *sums;  /* borrowed; NULL: not known, or the field has many values */
	struct ky_fact before, before_in_thread; /* the value in the instance before, if any */
	struct ky_values_seen *of_process, *of_thread; /* borrowed; that were asked for last */
};

/* The values of an asynchronous instance that is open. */
struct ky_async_values {
	struct ky_open_async open;
	struct ky_begun_values values;
};

struct ky_account {
	struct ky_explain *x;
	struct ky_source *source;
	struct ky_instances *of;
	struct ky_instance **chosen; /* in order of their begins */
	size_t n;
	struct ky_machine machine;
	KY_VEC(struct ky_window *) windows; /* owned */
	struct ky_before_mark marks[KY_MAX_MARKS];
	size_t n_marks;
	int64_t begun_ns; /* the newest begin of an instance; INT64_MIN: none */
	KY_VEC(struct ky_company_span) company; /* by index in x->company */
	KY_VEC(uint32_t) company_of;		/* by name: index + 1 in x->company */
	KY_VEC(struct ky_instance *) by_id; /* asynchronous ones, sorted by number, then begin */
	KY_VEC(struct ky_stage) stages;
	struct ky_htab open_async;     /* struct ky_thread_async */
	struct ky_htab open_instances; /* asynchronous ones: struct ky_async_values */
	KY_VEC(struct ky_running) running;
	struct ky_htab values_seen; /* of fields of begins */
	size_t n_values_seen;
	struct ky_field_repeat repeats[KY_MAX_REPEATS]; /* in the order in which they were met */
	size_t n_repeats;
	KY_VEC(int64_t) gaps;		     /* between CPU samples of one thread */
	struct ky_doing doings[KY_N_DOINGS]; /* by inner % KY_N_DOINGS */
	struct ky_htab functions; /* functions that have samples, by process and address */
	int error;
};

/* --- account.c --- */

/* Keeps the first error; r >= 0 is none. */
void ky_account_check(struct ky_account *a, int r);
/* Returns the thread's timeline, or NULL without memory. */
struct ky_timeline *ky_account_timeline(
	struct ky_account *a, uint32_t host, int64_t tid, int64_t pid);
void ky_account_name_thread(struct ky_account *a, const struct ky_timeline *t, uint32_t name);
void ky_account_begin_instance(struct ky_account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *outside);
void ky_account_end_instance(
	struct ky_account *a, struct ky_instance *i, const struct ky_source_event *e);

/* --- windows.c --- */

/* Makes all windows of the chosen instances, in their timelines. Returns 0 or a negative errno. */
int ky_windows_make(struct ky_account *a);
/* Adds a window to the timeline of its thread. Returns NULL without memory. */
struct ky_window *ky_windows_new(struct ky_account *a, struct ky_instance *i, uint32_t thread,
	int64_t from, int64_t to, uint32_t prefix, bool is_instance);
/* Returns whether `waker` wakes the window's thread only by giving it the instance. */
bool ky_window_is_given(struct ky_account *a, const struct ky_window *w, uint32_t waker);
/*
 * Opens the windows that begin within the stretch that ends at ns, but those that begin with an
 * event of their instance.
 */
void ky_windows_open(struct ky_account *a, struct ky_timeline *t, int64_t ns);
/* Opens a window. Its path gets the frames of the stack that are above the first `strip` ones. */
void ky_window_open(struct ky_account *a, struct ky_timeline *t, struct ky_window *w, size_t strip);
/*
 * Adds the stretch from the thread's newest event to this one, whose name is b. Until condition_ns,
 * the thread waits for a condition; INT64_MIN: it does not.
 */
void ky_window_stretch(struct ky_account *a, struct ky_timeline *t, struct ky_window *w, int64_t ns,
	uint32_t b, int64_t condition_ns);
/*
 * Pushes a copy of the frame, also to the paths of the open windows. If the stack is full, drops
 * it: the end of such a span closes the next outer frame of its name, if there is one.
 */
void ky_windows_push(struct ky_account *a, struct ky_timeline *t, const struct ky_frame *f);
/* Closes the frames from index n on, also in the paths of the open windows. */
void ky_windows_pop(struct ky_account *a, struct ky_timeline *t, size_t n, int64_t ns);
/* Finds or adds a component: see ky_component_child(). */
uint32_t ky_window_child(
	struct ky_account *a, uint32_t parent, enum ky_component_kind kind, uint32_t n, uint32_t m);
/* Returns the component of the innermost frame. The window was opened: its path is not empty. */
uint32_t ky_window_top(const struct ky_window *w);
/* The component of time in which the thread did not run. */
uint32_t ky_window_off(struct ky_account *a, const struct ky_window *w, const struct ky_off *off);

/* --- samples.c --- */

/* Keeps a sample of the thread until its stretch ends. */
void ky_samples_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* Adds the samples of the stretch that ends now to the window's instance, in this component. */
void ky_samples_take(
	struct ky_account *a, const struct ky_timeline *t, struct ky_window *w, uint32_t component);
/* Stores the distance of samples, and frees all that samples have used. */
void ky_samples_end(struct ky_account *a);

/* --- company.c --- */

/*
 * A span of that name begins or ends in a thread. Names beyond KY_MAX_COMPANY, or without memory,
 * are not measured, which is no error.
 */
void ky_company_begin(struct ky_account *a, uint32_t name, uint32_t thread, int64_t ns);
/* thread, from: where and when it began; UINT32_MAX, ns: not known. */
void ky_company_end(struct ky_account *a, uint32_t name, uint32_t thread, int64_t from, int64_t ns);
/*
 * While the spans that are open in a thread ran, it waited for another thread: they are no reason
 * for the instances of that thread.
 */
void ky_company_wait(struct ky_account *a, const struct ky_timeline *t, uint32_t thread,
	int64_t from, int64_t to);
/* Stores how long spans of each name had run when the instance began. */
void ky_company_open(struct ky_account *a, struct ky_instance *i);
/* Adds to the instance how long spans of each name ran during it; after ky_company_open(). */
void ky_company_close(struct ky_account *a, struct ky_instance *i);

/* --- traits.c --- */

/* Adds a fact; of two facts with one key, keeps the first. */
void ky_traits_add_fact(
	struct ky_account *a, struct ky_instance *i, struct ky_trait_key key, struct ky_fact fact);
/* Whether the field is identity or bookkeeping, which has a trait of its own; or an address. */
bool ky_traits_is_no_fact(
	struct ky_account *a, const struct ky_source_event *e, const struct ky_field *f);
/* Adds the fields of the event, or its contexts. */
void ky_traits_add(struct ky_account *a, struct ky_instance *i, const struct ky_source_event *e,
	enum ky_trait_kind kind, uint32_t name, bool contexts);
/*
 * Adds all facts that are known when the instance begins. t: the timeline of its thread, without
 * the instance; NULL: not known.
 */
void ky_traits_add_begin(struct ky_account *a, struct ky_instance *i,
	const struct ky_source_event *e, const struct ky_timeline *t);
/* Adds the fields of the first event of each name inside; of spans, until a longer one ends. */
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

/* --- running.c --- */

/*
 * Adds the numbers of the begin or end of any instance to the sums. Of a begin: after
 * ky_repeats_add(). thread: UINT32_MAX: not known.
 */
void ky_running_add(struct ky_account *a, const struct ky_source_event *e, enum ky_trait_kind kind,
	uint32_t thread);
/* Stores these sums in the instance. */
void ky_running_keep(struct ky_account *a, struct ky_instance *i, enum ky_trait_kind kind);
void ky_running_deinit(struct ky_account *a);

/* --- repeats.c --- */

/*
 * Remembers the values of the begin of any instance. thread: UINT32_MAX: not known. ret: for its
 * end.
 */
void ky_repeats_add(struct ky_account *a, const struct ky_source_event *e, uint32_t thread,
	struct ky_begun_values *ret);
/* The instance with these values ends; clears them. */
void ky_repeats_end(struct ky_begun_values *values, int64_t ns);
/* Adds to the instance whether these values came before; after ky_repeats_add() of its begin. */
void ky_repeats_keep(struct ky_account *a, struct ky_instance *i);
void ky_repeats_deinit(struct ky_account *a);

/* --- before.c --- */

/*
 * Remembers events of the application and ends of spans, for instances that begin later. t: the
 * timeline of the event's thread; NULL: not known.
 */
/* Keeps those that came once or twice. 0 or -ENOMEM. */
int ky_before_keep_rare(struct ky_account *a);
void ky_before_add_event(
	struct ky_account *a, const struct ky_timeline *t, const struct ky_source_event *e);
/*
 * Adds to the instance what came before it. thread_begun_ns: the begin of the instance before in
 * the same thread, or INT64_MIN.
 */
void ky_before_add_traits(struct ky_account *a, struct ky_instance *i, int64_t thread_begun_ns);

/* --- charges.c --- */

/*
 * Charges the wait for a condition, from the thread's newest event until ns, to the thread that
 * woke it, in all open windows.
 */
void ky_account_charge_condition(
	struct ky_account *a, struct ky_timeline *t, const struct ky_wake *wake, int64_t ns);
/* Charges the time after `from` in which the thread did not run, in all open windows. */
void ky_account_charge_off(struct ky_account *a, struct ky_timeline *t, int64_t from);
/*
 * Charges the wait for a mutex to its holders. held: the same mutex, as the process knows it that
 * held it.
 */
void ky_account_charge_lock(struct ky_account *a, const struct ky_timeline *t,
	const struct ky_mutex *mutex, const struct ky_mutex *held, int64_t from, int64_t to);

/* --- locking.c --- */

/* Takes an event of a mutex or condition. t: of its thread. Errors are a's. */
void ky_locking_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* A wait for a condition begins: returns the mutex, or NULL without memory. */
struct ky_mutex *ky_locking_lend(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* The end of a wait for a condition that this event shows, or NULL. */
const struct ky_wake *ky_locking_find_wake(
	const struct ky_timeline *t, const struct ky_source_event *e);
/* Returns when the condition was met that the thread waited for until ns. */
int64_t ky_locking_met_ns(const struct ky_wake *wake, int64_t ns);

/* --- async.c and stages.c --- */

/* Takes an event of an asynchronous span. t: of its thread, or NULL. Errors are a's. */
void ky_async_add_event(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
void ky_async_deinit(struct ky_account *a);
/* Reads the stages of all chosen instances. Returns 0 or a negative errno. */
int ky_stages_read(struct ky_account *a);
/* Makes the windows of an instance: its stages, and the time between. After ky_stages_read(). */
void ky_stages_add_windows(struct ky_account *a, struct ky_instance *i);

/* --- scheduler.c --- */

/* Returns the index of the event's processor, or UINT32_MAX. */
uint32_t ky_scheduler_processor(struct ky_account *a, const struct ky_source_event *e);
/* Returns the event's thread; if an event of the kernel has none, the one on its processor. */
int64_t ky_scheduler_tid(struct ky_account *a, const struct ky_source_event *e, uint32_t processor);
void ky_scheduler_raise(
	struct ky_account *a, struct ky_timeline *t, const struct ky_source_event *e);
/* Returns false for events that are not the scheduler's or a block device's. */
bool ky_scheduler_add_event(
	struct ky_account *a, const struct ky_source_event *e, int64_t tid, uint32_t processor);

#endif
