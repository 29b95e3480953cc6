/* SPDX-License-Identifier: MIT */
/* The question and its explanation: explain.c makes it, from parts that answer.c and others add. */
#ifndef EXPLAIN_EXPLANATION_H
#define EXPLAIN_EXPLANATION_H

#include "explain/difference.h"

/* Patterns of the kernel's events that say what a thread waits for, and what runs instead. */
#define KY_EXPLAIN_KERNEL                                                                          \
	"sched_switch,sched_waking,irq_*,softirq_*,hrtimer_expire_*,block_rq_*,page_fault_*"

enum ky_verdict {
	KY_VERDICT_CAUSES,
	KY_VERDICT_NOT_RECORDED, /* a group of their own that differs in nothing recorded */
	KY_VERDICT_NOTHING,	 /* the tail of one distribution */
	KY_VERDICT_TOO_FEW,
};

struct ky_explain_question {
	const struct ky_query *query; /* of the trace, opened */
	const char *const *paths;     /* its names, for commands */
	size_t n_paths;
	const struct ky_query *against_query; /* of the other trace; NULL: there is none */
	const char *against;
	const char *span;
	const char *const *pairs; /* as ky_source_add_pair() */
	size_t n_pairs;
	struct ky_slowest slowest;
	const struct ky_explain_symbols *symbols; /* NULL: addresses stay numbers */
	/* Names of functions, which are spans then; NULL: they are none. */
	const struct ky_function_names *functions, *against_functions;
	/* Receives reports of damage, once, from another thread; NULL: nobody does. */
	const struct ky_trace_reader_options *report;
};

/* Something that is missing in the trace, and the option that records it. */
struct ky_unknown {
	char *what, *option; /* owned */
};

/* The ways to choose the slow ones, and what they differ in. */
struct ky_comparison {
	struct ky_groups groups;
	struct ky_difference differences[KY_MAX_GROUPS];
	size_t n_differences;
	const struct ky_difference *chosen; /* NULL: too few */
	double part;			    /* of the extra time that chosen is about */
	const struct ky_difference *whole;  /* chosen is a part of it; NULL: of none */
	/* The slowest of the chosen ones, if they have another reason; NULL: they have not. */
	const struct ky_difference *slowest;
};

struct ky_explanation {
	struct ky_explain_question question; /* borrowed texts */
	struct ky_explain x;
	struct ky_source *sources[2]; /* owned; the second, of `against`, may be NULL */
	struct ky_instances instances[2];
	/* By the times of instances; and by these without the machine's load. c: one of them. */
	struct ky_comparison comparisons[2];
	struct ky_comparison *c;
	enum ky_verdict verdict;
	char *first_line; /* owned */
	KY_VEC(struct ky_unknown) unknown;
};

#endif
