/* SPDX-License-Identifier: MIT */
/*
 * Findings: the slow instances have more of something than typical ones. Their amounts add up to
 * the difference of the means. Tests decide which of them count (docs/explain.md, "The account" and
 * "Tests").
 */
#ifndef EXPLAIN_DIFFERENCE_H
#define EXPLAIN_DIFFERENCE_H

#include "explain/groups.h"

#define KY_MIN_SHARE 0.10
/* Conditions: part of the excess that they explain, or parts of instances that limit a cause. */
#define KY_MIN_EXPLAINED  0.25
#define KY_LIMIT_PART	  0.9	/* of affected instances have it */
#define KY_LIMIT_CONTRAST 0.6	/* more than of typical ones */
#define KY_ALPHA	  0.002 /* for each group of slow instances, of up to KY_MAX_GROUPS */

enum ky_finding_kind {
	KY_FINDING_LONGER, /* each took longer */
	KY_FINDING_COUNT,  /* it came more often */
	KY_FINDING_NEW,	   /* typical instances do not have it */
	KY_FINDING_EVENT,  /* an event came more often; its ways together */
	KY_FINDING_ALLOC,  /* ways between allocations */
	KY_FINDING_LOCKS,  /* ways between calls for mutexes */
};

/* Findings with equal keys are one. */
struct ky_finding_key {
	enum {
		KY_KEY_PLAIN,
		KY_KEY_EVENT,
		KY_KEY_SELF,
		KY_KEY_READY,
		KY_KEY_ALLOC,
		KY_KEY_LOCKS,
		KY_KEY_LOCK
	} group;
	uint32_t kind;	/* PLAIN: enum ky_finding_kind */
	uint32_t place; /* component, or name of the innermost span */
	uint64_t what;	/* EVENT: its name; LOCK: address of the mutex; PLAIN ways: their ends */
};

/* A condition that affected instances have in common, and typical ones have not. */
struct ky_condition {
	char *text;	/* owned */
	size_t n_brief; /* bytes of it that enter the sentence; the rest is evidence */
	double p;
	double explained; /* part of the finding's excess */
	double by_means;  /* likewise, predicted by means alone */
	double contrast;  /* how much more frequent it is in affected instances: 0 .. 1 */
	double part;	  /* of the affected instances that have it; 0: not counted */
	int rank; /* 0: begin, times; 1: contexts; 2: end; 3: company; 4: pattern of times */
	enum {
		KY_ABOUT_FIELD,
		KY_ABOUT_HOST,
		KY_ABOUT_THREAD, /* or process */
		KY_ABOUT_CPU,	 /* evidence only: others may use it */
		KY_ABOUT_COMPANY,
		KY_ABOUT_TIME,
	} about;
	uint8_t *has;	  /* owned: 1 for each affected instance that has it; NULL: not known */
	bool is_chance;	  /* runs of instances that have it meet runs of affected ones by chance */
	bool is_call;	  /* about the begin of the longest span of a name inside */
	bool is_law;	  /* a size that fits a line well, whatever noise is beside it */
	double r2;	  /* of the line; 0: it is none */
	bool is_order;	  /* of values: what came before the instance */
	bool is_other;	  /* all values but one */
	bool is_range;	  /* numbers from one on, up to one, or between two */
	bool is_evidence; /* it does not enter the sentence, and makes no finding */
};

struct ky_finding {
	enum ky_finding_kind kind;
	struct ky_finding_key key;
	uint32_t component;		  /* of the greatest amount */
	KY_VEC(uint32_t) components;	  /* all that were put together */
	double amount, top;		  /* ns; top: of `component` alone */
	double count[2], mean_ns[2];	  /* of `component`: for each slow, typical instance */
	double typical_ns, typical_count; /* means of all components together */
	double share, typical_share;
	double late;	 /* ky_finding_late() of typical ones */
	double exposure; /* the part of delays that would come in it if the machine made them */
	KY_VEC(struct ky_instance *) affected;
	size_t blamed;	 /* slow instances in which it has the greatest excess */
	double noise;	 /* how often it is the greatest excess of a typical one */
	double p;	 /* corrected for the number of tests; 1 if it was not tested */
	bool is_unended; /* a wait of nearly all instances that nobody is known to end */
	bool is_tight;	 /* its delays in slow instances are of nearly the same length */
	bool is_in_tail; /* its times in slow instances are the tail of its times in all of them */
	bool is_valid;
	bool is_shown;
	bool is_tracer;	  /* not shown: the tracer itself caused it */
	char *executed;	  /* what CPU samples say of it: owned, or NULL */
	bool is_executed; /* in shorter instances they say something else */
	KY_VEC(struct ky_condition) conditions;
	struct ky_condition other; /* of those that lack the first condition; text NULL: none */
	char *clause;		   /* owned */
	KY_VEC(char *) evidence;   /* owned */
};

struct ky_difference {
	struct ky_explain *x;
	const struct ky_group *group;
	struct ky_instance *const *all; /* borrowed; all that have an account */
	size_t n_all;
	/* Slow ones but the longest twentieth: one stalled for another reason must not decide. */
	struct ky_instance **slow; /* owned */
	size_t n_slow;
	size_t n_blaming;		      /* slow ones that have much of the extra time */
	double slow_ns, typical_ns, extra_ns; /* means */
	KY_VEC(struct ky_finding *) findings; /* owned; the greatest amount first */
};

/* all: those that have an account; borrowed. 0 or -ENOMEM. ky_difference_deinit in any case. */
int ky_difference_find(struct ky_difference *d, struct ky_explain *x, const struct ky_group *group,
	struct ky_instance *const *all, size_t n_all);
void ky_difference_deinit(struct ky_difference *d);

void ky_condition_deinit(struct ky_condition *c);
/*
 * Whether nearly all affected instances, and few typical ones, have a value that is known before:
 * that limits the reason, although not all instances with the value are slow.
 */
bool ky_condition_is_limit(const struct ky_condition *c);
/* Returns whether the finding is about the key: the same group, kind, place and object. */
bool ky_finding_has_key(const struct ky_finding *f, const struct ky_finding_key *key);
/* Returns the kind of the component that takes longer. */
enum ky_component_kind ky_finding_part(const struct ky_explain *x, const struct ky_finding *f);
/* A wait: for a mutex, a condition, a processor, a thread. */
bool ky_finding_is_wait(const struct ky_explain *x, const struct ky_finding *f);
/* A mere place that takes longer, or a usual wait that nobody is known to end, as a sleep. */
bool ky_finding_is_place(const struct ky_explain *x, const struct ky_finding *f);
/* Time of an asynchronous instance before any event of its threads. */
bool ky_finding_is_unseen(const struct ky_explain *x, const struct ky_finding *f);
/* Time and number of its components in a closed instance. */
double ky_finding_ns(const struct ky_finding *f, const struct ky_instance *i);
/* Its part of the instance's time, weighted by the time since the begin: 0 .. 1. */
double ky_finding_late(const struct ky_finding *f, const struct ky_instance *i);
double ky_finding_count(
	const struct ky_explain *x, const struct ky_finding *f, const struct ky_instance *i);

#endif
