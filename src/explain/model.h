/* SPDX-License-Identifier: MIT */
/*
 * The model of a trace: instances of one span, and for each of the chosen ones an exact
 * account of its time, with what else it has that others may not have.
 *
 * An account consists of parts. A part has a component: a node of one tree that all instances
 * share. Below the root, which is the instance itself, are spans and waits; below each of these are
 * ways: stretches from one event of the thread to the next. The times of an instance's ways add up
 * to its duration.
 *
 *	shop:checkout                           SPAN, the root
 *	├─ shop:checkout_begin .. db:query_begin        WAY
 *	├─ db:query                             SPAN
 *	│  ├─ db:query_begin .. mutex_lock_req          WAY
 *	│  ├─ LOCK
 *	│  │  └─ mutex_lock_req .. mutex_lock_acq       WAY
 *	│  └─ mutex_lock_acq .. db:query_end            WAY
 *	└─ db:query_end .. shop:checkout_end            WAY
 */
#ifndef EXPLAIN_MODEL_H
#define EXPLAIN_MODEL_H

#include "analysis/source.h"

/* Bounds of what is kept. Instances beyond are sampled, components beyond are put together. */
#define KY_MAX_INSTANCES  ((size_t)200000) /* instances with times that are kept */
#define KY_MAX_LONGEST	  ((size_t)1000)   /* kept besides when there are more */
#define KY_MAX_GROUP	  ((size_t)1000)   /* slow, and typical, ones that are looked at */
#define KY_MAX_SAMPLE	  ((size_t)3000)   /* of all, for the effect of fields */
#define KY_MAX_COMPONENTS ((size_t)2048)
#define KY_MAX_DEPTH	  64  /* spans in spans */
#define KY_MAX_TRAITS	  160 /* of an instance */
#define KY_MAX_BLAMES	  64  /* of an instance */
#define KY_MAX_COMPANY	  200 /* names of spans */
#define KY_MAX_SAMPLES	  64  /* CPU samples of an instance */
#define KY_SAMPLE_DEPTH	  6   /* addresses of each */

enum ky_component_kind {
	KY_PART_SPAN,
	KY_PART_LOCK,	   /* requested a mutex, and has not acquired it */
	KY_PART_CONDITION, /* holds a mutex while another thread acquires it */
	KY_PART_READY,	   /* could run, and did not */
	KY_PART_WAIT,	   /* off the processor until woken */
	KY_PART_WAY,
};

struct ky_component {
	struct ky_hnode node;
	uint32_t number, parent;
	uint8_t kind; /* enum ky_component_kind */
	uint8_t depth;
	/* SPAN: name, 0; WAY: names of the events at its ends; WAIT: "stopped" or 0, 0 */
	uint32_t a, b;		    /* 0, 0 of a WAY: all others */
	uint32_t n_stages, n_given; /* stages; those that end in another thread */
};

/* Components by number; 0 is none, 1 the root. */
struct ky_components {
	struct ky_htab table;
	KY_VEC(struct ky_component *) all; /* owned */
	int error;			   /* 0 or -ENOMEM; sticks */
};

#define KY_ROOT 1u

/* Finds or adds a child; if there are too many, the parent's "all others". Returns its number. */
uint32_t ky_component_child(struct ky_components *c, uint32_t parent, enum ky_component_kind kind,
	uint32_t a, uint32_t b);
/* Counts a stage of an asynchronous instance. */
void ky_component_count_stage(struct ky_components *c, uint32_t number, bool is_given);
static inline const struct ky_component *ky_component_get(
	const struct ky_components *c, uint32_t number)
{
	return c->all.v[number - 1];
}

/* One component of one instance. */
struct ky_part {
	uint32_t component;
	uint32_t count;
	int64_t ns; /* once closed: with all below */
	/*
	 * The same, each moment weighted by the time since the instance began: 0 .. 1. A thread
	 * that just woke is seldom preempted, so delays by the machine come in this proportion.
	 */
	double late;
};

/* The source of a fact of an instance. */
enum ky_trait_kind {
	KY_TRAIT_BEGIN,	  /* field of its begin */
	KY_TRAIT_OUTER,	  /* field of the begin of a span around it; name: that span */
	KY_TRAIT_COUNTER, /* name: the counter; its newest value */
	/* Field of the begin of the instance before. */
	KY_TRAIT_BEFORE,	   /* of its process */
	KY_TRAIT_BEFORE_OF_THREAD, /* of its thread */
	/* name: an event or a span that ended; 1: since the instance before, 0: earlier */
	KY_TRAIT_FIRST,
	KY_TRAIT_FIRST_OF_THREAD, /* since the instance before of the same thread */
	/* Of a field of its begin; 1: the value comes for the first time, 0: it came before. */
	KY_TRAIT_NEW,		/* in its process */
	KY_TRAIT_NEW_OF_THREAD, /* in its thread */
	/* 0: the value is that of the instance before, 1: it is another one. */
	KY_TRAIT_CHANGED,	    /* of its process */
	KY_TRAIT_CHANGED_OF_THREAD, /* of its thread */
	/* Nanoseconds since the instance before with that value in its process; INT64_MAX: none. */
	KY_TRAIT_AGE,
	KY_TRAIT_CONTEXT, /* context of its begin */
	KY_TRAIT_HOST,	  /* a name */
	KY_TRAIT_THREAD,
	KY_TRAIT_PROCESS,
	KY_TRAIT_CPU,	   /* ky_explain_processor() */
	KY_TRAIT_CALLER,   /* the span around it */
	KY_TRAIT_PAUSE,	   /* nanoseconds since the instance before in its thread */
	KY_TRAIT_CALL,	   /* field of the begin of the longest span of that name inside */
	KY_TRAIT_END,	   /* field of its end */
	KY_TRAIT_CALL_END, /* of its end */
	KY_TRAIT_INNER,	   /* field of the first event of that name inside; no field: 1, it comes */
};

/* Whether it is a time before the instance. */
static inline bool ky_trait_is_pause(enum ky_trait_kind kind)
{
	return kind == KY_TRAIT_PAUSE || kind == KY_TRAIT_AGE;
}

/* Whether it is about the values of the instances before. */
static inline bool ky_trait_is_of_order(enum ky_trait_kind kind)
{
	return (kind >= KY_TRAIT_NEW && kind <= KY_TRAIT_AGE) || kind == KY_TRAIT_BEFORE ||
	       kind == KY_TRAIT_BEFORE_OF_THREAD;
}

struct ky_trait_key {
	enum ky_trait_kind kind;
	uint32_t name;	/* OUTER, CALL, INNER: span or event */
	uint32_t field; /* or 0 */
};

struct ky_trait {
	uint32_t key; /* index into ky_explain.keys */
	struct ky_fact fact;
};

/* Part of a wait that was charged to what a thread did meanwhile. */
struct ky_blame {
	uint32_t component; /* LOCK, CONDITION, READY, WAIT */
	uint32_t thread;
	uint32_t span; /* innermost, or 0 */
	uint32_t via;  /* a name: who else waits in between; or 0 */
	uint64_t caller;
	int64_t ns;
	bool is_load; /* the thread has no part in what is asked, and ran instead */
	/* The thread that is waited for and could run, while `thread` ran; UINT32_MAX: itself. */
	uint32_t ready, ready_span;
};

struct ky_wait {
	uint32_t component;
	uint32_t n, n_holders;
	uint64_t mutex;
	int64_t ns;
	int64_t charged; /* to threads, all together */
};

/* Time of a wait in which others ran instead, who have no part in what is asked: a load. */
struct ky_load {
	uint32_t component; /* LOCK, CONDITION, READY, WAIT */
	int64_t ns;
	int64_t peers_ns; /* of it: threads that have the same span */
};

/* How long spans of other threads with this name ran at the same time. */
struct ky_company {
	uint32_t name;
	int64_t ns;
	double each_ns;	    /* the sum of the times of each of them */
	double waiting_ns;  /* of that, in which they waited for the instance's thread */
	int64_t late_ns;    /* from the instance's begin until the first began; 0: it was open */
	int64_t handoff_ns; /* of the longest one of them that ended when the instance did */
	uint32_t handoff_thread; /* its thread */
};

/* Of company, at an instance's begin. */
struct ky_company_before {
	int64_t ns;
	double each_ns;
	uint64_t n_begun;
	bool is_open;
};

/* No key. */
#define KY_NO_KEY UINT32_MAX

/*
 * The sum of a field's numbers: of all instances until this one, and of those of its thread. With
 * `by`, all are those that have the same value of that field; without `key`, it is their number.
 */
struct ky_sum {
	uint32_t key, by;
	double all, thread;
};

/* The longest call of a span inside. */
struct ky_longest {
	uint32_t name;
	int64_t ns;
};

/* A CPU sample. */
struct ky_sample {
	uint32_t component;		     /* WAY */
	uint32_t n;			     /* it stands for so many */
	uint32_t functions[KY_SAMPLE_DEPTH]; /* names, the innermost first; 0: not known */
};

struct ky_instance {
	int64_t begin_ns, end_ns;
	double ns;
	uint64_t id;	     /* of an asynchronous one */
	uint32_t streams[2]; /* ranks, of begin and end */
	uint32_t group;	     /* of the trace's streams */
	uint32_t thread, end_thread;
	uint32_t ordinal, thread_ordinal, process_ordinal; /* by their begins, from 0 */
	int64_t pause_ns; /* since the end of the one before in its thread; -1: there is none */
	double largest_allocation; /* bytes; 0: there is none */
	uint64_t random;	   /* order in which instances are taken into samples */
	bool is_second;		   /* of the trace to compare with */
	bool is_chosen;		   /* the rest is filled in */
	/* How many instances it stands for as one of a sample; ky_group_weight(). */
	double weight;
	bool is_closed;
	bool is_net; /* ns and parts are without loads */
	KY_VEC(struct ky_part) parts;
	KY_VEC(struct ky_trait) traits;
	KY_VEC(struct ky_blame) blames;
	KY_VEC(struct ky_wait) waits;
	KY_VEC(struct ky_load) loads;
	KY_VEC(struct ky_company) company;
	KY_VEC(struct ky_sum) sums;
	KY_VEC(struct ky_sample) samples;
	/* While it is open: index + 1 into parts by component, total of company at the begin. */
	uint16_t *slots;
	struct ky_company_before *company_before;
	KY_VEC(struct ky_longest) longest; /* of each name, the longest spans that ended */
};

struct ky_explain_thread {
	struct ky_hnode node;
	struct ky_hnode process_node;
	uint32_t number;
	bool is_second;
	uint32_t host;
	int64_t tid, pid;	      /* pid: -1 if it is not known */
	uint32_t name;		      /* the newest */
	uint32_t process;	      /* number of the first thread of its process */
	uint32_t n_instances;	      /* instances that began in it */
	uint32_t n_process_instances; /* of a process's first thread: in all of them */
	int64_t ended_ns;	      /* when the newest instance ended; 0: none did */
	bool is_program;	      /* of a process's first thread: it has events of its own */
};

/* Spans whose company is measured, and the thread that has them all; UINT32_MAX: several do. */
struct ky_company_name {
	uint32_t name, thread;
};

/* Names of addresses: functions, and variables such as mutexes. */
struct ky_explain_symbols {
	/* Writes a name, without the address. Returns false if none is known. */
	bool (*find)(void *arg, const char *host, int64_t pid, uint64_t address, bool is_return,
		char *text, size_t size);
	/* The same, of the function alone. */
	bool (*find_function)(void *arg, const char *host, int64_t pid, uint64_t address,
		bool is_return, char *text, size_t size);
	void *arg;
};

/* An event of the application, or the end of a span, of a name that comes once or twice. */
struct ky_rare {
	uint32_t name;
	int64_t ns;
};

struct ky_explain {
	const struct ky_explain_symbols *symbols; /* borrowed, or NULL */
	struct ky_texts names;
	struct ky_components components;
	KY_VEC(struct ky_explain_thread *) threads; /* owned */
	struct ky_htab by_tid;
	struct ky_explain_thread *last_thread; /* the thread that was looked up last; or NULL */
	struct ky_htab by_pid; /* the first thread of each process, by process_node */
	KY_VEC(struct ky_trait_key) keys;
	struct ky_htab by_key;
	KY_VEC(struct ky_company_name) company; /* in the order in which they were met */
	KY_VEC(struct ky_rare) rare;
	uint32_t span;		     /* the name asked for */
	int64_t sample_ns;	     /* between CPU samples of a thread that runs; 0: none */
	uint32_t unseen;	     /* the name of time without any event of the thread; 0: none */
	uint32_t largest_allocation; /* a name, whose size is a fact; 0: there is none */
	bool is_async;
	bool has_others; /* there are gaps in what is known of the processors */
};

/* Numbers of what is no thread: a block device; the threads whose switches were not recorded. */
#define KY_DEVICE_TID (-1000)
#define KY_OTHERS_TID (-999)

/* The component of that number. */
static inline const struct ky_component *ky_component_of(
	const struct ky_explain *x, uint32_t number)
{
	return ky_component_get(&x->components, number);
}
/* The thread of that number; makes it. UINT32_MAX without memory. */
uint32_t ky_explain_thread(
	struct ky_explain *x, bool is_second, uint32_t host, int64_t tid, int64_t pid);
uint32_t ky_explain_key(struct ky_explain *x, struct ky_trait_key key);
/* A processor as a number: two hosts may have the same ones. */
static inline int64_t ky_explain_processor(uint32_t host, int64_t cpu)
{
	return (int64_t)((uint64_t)host << 32 | (uint32_t)cpu);
}
/* Whether threads of several hosts were recorded: then their numbers alone name none. */
bool ky_explain_has_hosts(const struct ky_explain *x);
/* Whether several processes have instances, each in one thread alone. */
bool ky_explain_has_single_threads(const struct ky_explain *x);
void ky_explain_deinit(struct ky_explain *x);
void ky_instance_deinit(struct ky_instance *i);
/* For qsort() of arrays of pointers: the shortest, the earliest first. */
int ky_instance_by_length(const void *a, const void *b);
int ky_instance_by_begin(const void *a, const void *b);
/* The part of a component, or NULL. The instance is closed. */
const struct ky_part *ky_instance_part(const struct ky_instance *i, uint32_t component);
/* The fact of that key, or NULL. The instance is closed. */
const struct ky_fact *ky_instance_fact(const struct ky_instance *i, uint32_t key);
/* The sum of that key, by that key; or NULL. */
const struct ky_sum *ky_instance_sum(const struct ky_instance *i, uint32_t key, uint32_t by);
int ky_fact_compare(const struct ky_fact *a, const struct ky_fact *b);
/* The part of its time while spans of that name ran in other threads: 0 .. 1. */
double ky_instance_company(const struct ky_instance *i, uint32_t name);
/*
 * The company of that name; NULL: none. Spans that mostly wait for the instance's thread are none:
 * it keeps them from their work.
 */
const struct ky_company *ky_instance_find_company(const struct ky_instance *i, uint32_t name);
/* Adds to a part while the instance is open. 0 or -ENOMEM. */
int ky_instance_add(struct ky_instance *i, uint32_t component, uint32_t count, int64_t ns);
/* The same for the time from..to, but for off_ns of it. */
int ky_instance_add_time(
	struct ky_instance *i, uint32_t component, int64_t from, int64_t to, int64_t off_ns);
/* Sums up each component with all below it, and sorts the parts. 0 or -ENOMEM. */
int ky_instance_close(struct ky_explain *x, struct ky_instance *i);
/* The time of its loads, in all; of peers alone. */
int64_t ky_instance_load(const struct ky_instance *i);
int64_t ky_instance_peers(const struct ky_instance *i);
/* Whether the thread is the tracer's: of its programs, or within the application. */
bool ky_explain_is_tracer(const struct ky_explain *x, uint32_t thread);
/* Takes its loads out of its time and its parts, or adds them again. It is closed. */
void ky_instance_set_net(const struct ky_explain *x, struct ky_instance *i, bool is_net);

#endif
