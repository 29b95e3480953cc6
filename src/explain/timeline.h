/* SPDX-License-Identifier: MIT */
/*
 * The life of each thread, event by event: the spans that are open, whether it runs, what it waits
 * for, and a history of that, long enough to charge a wait to the threads that caused it.
 *
 * The account (account.c) feeds timelines with the events of a trace, and gets the stretches
 * between two events of a thread, divided where the thread did not run.
 */
#ifndef EXPLAIN_TIMELINE_H
#define EXPLAIN_TIMELINE_H

#include "analysis/open-async.h"
#include "base/list.h"
#include "explain/locks.h"
#include "explain/model.h"

/* The stretch of the thread that an interrupt is in: it goes on behind it. */
struct ky_cut {
	bool is_set;
	bool is_async_new;
	int64_t last_ns;
	uint32_t last_name;
	size_t n_off, n_stacks; /* how many belong to it so far */
};

struct ky_frame {
	uint32_t name;	/* of the span; LOCK: 0 */
	uint32_t doing; /* PAIR: with the span around it, "db:query;read()"; others: name */
	bool is_lock, is_pair, is_interrupt;
	bool is_of_kernel; /* a call of the kernel, or two of its events that --pair names */
	int64_t begin_ns;
	struct ky_cut cut;	/* INTERRUPT */
	size_t n_outer;		/* length of ky_timeline.outer below it */
	struct ky_mutex *mutex; /* not LOCK: lent while it waits for a condition; or NULL */
};

enum ky_thread_state {
	KY_STATE_RUNNING, /* or nothing else is known */
	KY_STATE_LOCK,
	KY_STATE_CONDITION,
	KY_STATE_WAITING,
	KY_STATE_READY,
};

/* The state of the thread from here to the next entry. */
struct ky_history {
	int64_t ns;
	uint8_t state;	 /* enum ky_thread_state */
	uint32_t span;	 /* ky_frame.doing of the innermost */
	uint32_t thread; /* WAITING, CONDITION: the waker or UINT32_MAX; READY: a processor */
	struct ky_mutex *mutex; /* LOCK */
};

/* Time within the current stretch in which the thread did not run, or ran an interrupt. */
struct ky_off {
	int64_t from, to;
	enum ky_component_kind
		kind;	 /* WAIT or READY; SPAN: an interrupt, which has its own parts */
	uint32_t thread; /* as of struct ky_history */
	bool is_stopped; /* WAIT: by a signal, or by a debugger */
};

/* Another thread acquired a mutex that this one holds. */
struct ky_wake {
	bool is_set, is_peer;
	int64_t ns;
	uint32_t thread;
	struct ky_mutex *mutex;
};

/* Of a CPU sample: addresses, the innermost first; 0 behind the last. */
struct ky_stack {
	int64_t ns;
	uint64_t addresses[KY_SAMPLE_DEPTH];
};

/* An asynchronous span in the thread where it began. */
struct ky_thread_async {
	struct ky_open_async open;
	struct ky_list of_thread;
};

#define KY_MAX_REPEATS 8 /* fields of begins whose values are remembered (repeats.c) */

/* The values with which an instance began, by field. Borrowed; NULL: not known. */
struct ky_begun_values {
	struct ky_seen_value *v[KY_MAX_REPEATS];
};

struct ky_timeline {
	uint32_t thread;
	KY_VEC(struct ky_frame) stack;
	struct ky_list asyncs; /* struct ky_thread_async: those that are open */
	bool is_async_new;
	KY_VEC(struct ky_trait) outer; /* fields of the begins of the spans in the stack */
	bool had_event;
	int64_t begun_ns; /* the newest begin of an instance here; INT64_MIN: none */
	struct ky_begun_values begun_values; /* of that instance, until one ends */
	int64_t last_ns;
	uint32_t last_name; /* of its newest event */
	/* CPU samples since its newest event; the newest one's time */
	KY_VEC(struct ky_stack) stacks;
	bool has_sample;
	int64_t sample_ns;
	int64_t net_raise_ns; /* it raised a soft interrupt of the network; 0: never */
	int64_t block_ns;     /* it gave a request to a block device; 0: never */
	int64_t block_device;
	/* off the processor since off_ns */
	bool is_off, is_preempted;
	bool is_firm;		  /* no signal ends its wait */
	bool is_stopped;	  /* as of struct ky_off */
	int64_t off_ns, woken_ns; /* woken_ns: INT64_MIN: not yet */
	uint32_t waker, processor;
	KY_VEC(struct ky_off) off;
	bool is_asking_name; /* for its own name, which libkymo records */
	/* by an owner that did not have to wait for it, or by one that had to */
	struct ky_wake wake, late_wake;
	KY_VEC(struct ky_history) history;
	size_t max_history;
	/* windows.c: stretches of time that instances want, by their begins */
	KY_VEC(struct ky_window *) windows;
	size_t next_window;
	KY_VEC(struct ky_window *) active;
	/* first of the trylocks that failed since the last success */
	int64_t try_ns;
	struct ky_mutex *tried;
};

/* Takes the charges for a wait. */
struct ky_charge {
	void (*add)(void *arg, const struct ky_blame *blame);
	void *arg;
	unsigned budget;    /* steps that are left */
	unsigned n_holders; /* of the first mutex */
	/* of it, in which a thread could run, and others did, who have no part in it */
	int64_t load_ns;
	int64_t peers_ns; /* of that: threads with the same span */
};

struct ky_processor {
	bool is_known;
	uint32_t trace_host;
	int64_t number;
	uint32_t thread;  /* runs now; UINT32_MAX: none, or not known */
	uint32_t others;  /* stands for those that ran in gaps; UINT32_MAX: no gap was found */
	int64_t block_ns; /* a block device completed its newest request then; INT64_MIN: none */
	int64_t block_device;
	KY_VEC(struct ky_history) history; /* thread: which one ran; UINT32_MAX: none */
};

struct ky_machine {
	struct ky_explain *x;
	KY_VEC(struct ky_timeline *)
	timelines; /* owned; by number of the thread; NULL: no event yet */
	KY_VEC(struct ky_processor) processors;
	struct ky_locks locks;
};

/* NULL without memory. */
struct ky_timeline *ky_machine_timeline(struct ky_machine *m, uint32_t thread);
/* Index of a processor, added when it is new; UINT32_MAX without memory. */
uint32_t ky_machine_processor(struct ky_machine *m, uint32_t host, int64_t number);
void ky_machine_deinit(struct ky_machine *m);

/*
 * The asynchronous span that began in the thread and is open: the thread works on it. NULL: there
 * is none, or there are several.
 */
const struct ky_open_async *ky_timeline_async(const struct ky_timeline *t);
/* The name of the innermost span, an asynchronous one if there is no other; or 0. */
uint32_t ky_timeline_span(const struct ky_timeline *t);
/* The innermost span at that time, as struct ky_history has it; or 0. */
uint32_t ky_timeline_span_at(const struct ky_timeline *t, int64_t ns);
/* When it was woken that runs since ns at the latest; ns: the scheduler's events do not say it. */
int64_t ky_timeline_woken_ns(const struct ky_timeline *t, int64_t ns);
bool ky_timeline_is_locking(const struct ky_timeline *t);
/* The interrupt that the thread is in, the innermost one; NULL: none. */
const struct ky_frame *ky_timeline_interrupt(const struct ky_timeline *t);
/* The first of t->off that belongs to the current stretch; others are of the one around. */
size_t ky_timeline_first_off(const struct ky_timeline *t);
/* Takes note of the thread's state from now on. 0 or -ENOMEM. */
int ky_timeline_note(struct ky_timeline *t, int64_t ns);

/* The scheduler switches the thread out (preempted: it could run on), wakes it, lets it run. */
int ky_timeline_leave(struct ky_timeline *t, int64_t ns, bool is_preempted, uint32_t processor);
int ky_timeline_wake(struct ky_timeline *t, int64_t ns, uint32_t waker);
int ky_timeline_run(struct ky_timeline *t, int64_t ns);
int ky_processor_switch(struct ky_processor *p, int64_t ns, uint32_t thread);

/* Charges a wait to what a thread did; to what those did that it waited for, and so on. */
void ky_charge_thread(
	struct ky_machine *m, struct ky_charge *c, uint32_t thread, int64_t from, int64_t to);
/* To what those did that held the mutex meanwhile, but for the thread that waited. */
void ky_charge_mutex(struct ky_machine *m, struct ky_charge *c, const struct ky_mutex *mutex,
	uint32_t waiter, int64_t from, int64_t to);
/* To those that ran on the processor. */
void ky_charge_processor(struct ky_machine *m, struct ky_charge *c, uint32_t processor,
	uint32_t waiter, int64_t from, int64_t to);

#endif
