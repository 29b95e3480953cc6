/* SPDX-License-Identifier: MIT */
/* Which instances are slow, and which are typical: docs/explain.md, "Slow and typical". */
#ifndef EXPLAIN_GROUPS_H
#define EXPLAIN_GROUPS_H

#include "explain/account.h"

#define KY_MIN_INSTANCES 20  /* below: no comparison */
#define KY_MIN_SLOWER	 1.1 /* times as long: two runs of a program differ by less anyway */
#define KY_MAX_GROUPS	 12  /* 11 ways, and a part of one */

/* The meaning of --slowest. */
struct ky_slowest {
	enum { KY_SLOWEST_AUTO, KY_SLOWEST_COUNT, KY_SLOWEST_PERCENT, KY_SLOWEST_LONGER } kind;
	double value; /* how many, percent, nanoseconds */
	const char *text;
};

/* "10", "2.5%", ">20ms" or "20ms"; -EINVAL. text must outlive the result. */
int ky_slowest_parse(struct ky_slowest *ret, const char *text);

/* One way to divide the instances. */
struct ky_group {
	struct ky_instance **slow, **typical; /* owned arrays of borrowed instances */
	size_t n_slow, n_typical;	      /* at most KY_MAX_GROUP each */
	double n_all_slow;		      /* with those that were not sampled */
	double slow_weight;		      /* how many of them each of n_slow stands for */
	double from_ns;			      /* the shortest slow one */
	double to_ns;			      /* the longest; 0: of all instances */
	size_t n_longer;		      /* instances of neither group: left out */
	double longer_ns;		      /* mean of those */
	bool is_mode;			      /* apart from the others, not cut from a tail */
	bool is_most;			      /* more than half of all instances */
	bool is_part;			      /* of a group that nothing explains as a whole */
	bool is_remarkable;		      /* longer than the tail of one distribution */
	double percent;			      /* the slowest of two traces, if not all are slower */
	double middle_ns[2];		      /* of two traces: the means of their middle halves */
	double tail_ns[2];		      /* the medians of their slowest percent */
	char how[64];
};

struct ky_groups {
	struct ky_group v[KY_MAX_GROUPS];
	size_t n;
};

/* Candidates, in the order in which they are to be tried. 0 or -ENOMEM. */
int ky_groups_find(struct ky_groups *g, struct ky_instances *v, const struct ky_slowest *slowest);
/*
 * The same of the chosen instances, by what their times are now: a sample of n_all that is among
 * them decides.
 */
int ky_groups_find_net(struct ky_groups *g, struct ky_instance *const *v, size_t n, double n_all);
/*
 * The slow ones of v, or its middle half, against the middle half of `typical`. If these do not
 * take longer, but the slowest of v do: those.
 */
int ky_groups_against(struct ky_groups *g, struct ky_instances *v, struct ky_instances *typical,
	const struct ky_slowest *slowest);
/*
 * How many instances of the trace this one stands for: all slow ones have an account, or many of
 * them; of the others, a sample has.
 */
double ky_group_weight(const struct ky_group *group, const struct ky_instance *i);
void ky_group_deinit(struct ky_group *group);
void ky_groups_deinit(struct ky_groups *g);
/* Up to max of n instances, those with the smallest random numbers, first. 0 or -ENOMEM. */
int ky_groups_sample(struct ky_instance ***ret, size_t *ret_n, struct ky_instance *const *v,
	size_t n, size_t max);

#endif
