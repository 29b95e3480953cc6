/* SPDX-License-Identifier: MIT */
/*
 * Event rules: which events a channel records. Pure.
 */
#ifndef SESSIOND_MODEL_RULE_H
#define SESSIOND_MODEL_RULE_H

#include "base/list.h"
#include "base/text.h"
#include "proto/app.h"
#include "sessiond/model/filter.h"

#define RULE_PATTERN_MAX    511 /* bytes */
#define RULE_EXCLUSIONS_MAX 64

#define RULE_SIMILAR_MAX 3
/* Names that are compared with a pattern: users choose both, and each takes time. */
#define RULE_COMPARED_MAX 4096

/* The subjects of a rule's pattern. All but the first are of kernel channels. */
enum rule_kind {
	RULE_EVENT,
	RULE_SYSCALL,  /* names of system calls: entry and exit */
	RULE_PROBE,    /* a place in the kernel; the pattern is the event's name */
	RULE_FUNCTION, /* functions of the kernel */
	RULE_USERSPACE_PROBE,
};

struct rule {
	struct ky_list node; /* in channel->rules */
	char *pattern;	     /* on "provider:name" (base/glob.h) */
	enum rule_kind kind;
	char *probe; /* lines that define its events (kernel/probes.h); NULL: none */
	char *place; /* of the probe, as users write it; NULL: none */
	/*
	 * Events of the kernel, when it was last examined. Of applications: names of events that
	 * the channel has ever had, if `counted` (channel_count_matches).
	 */
	unsigned n_matched;
	bool counted;
	char **exclusions;
	uint32_t n_exclusions;
	uint32_t level_type; /* enum ky_level_type */
	int32_t level;
	struct filter *filter; /* a reference; NULL: none */
	/* for people: why the filter cannot be applied to an event; NULL: it could always be */
	char *mismatch;
	enum filter_match mismatch_kind; /* of that event */
	bool enabled;
	char *similar
		[RULE_SIMILAR_MAX]; /* names like the pattern, of events that it does not match */
	unsigned n_similar, n_compared;
};

/* Makes a rule, and copies the strings. Returns NULL if allocation fails. */
struct rule *rule_new(const char *pattern, const char *const *exclusions, uint32_t n_exclusions,
	uint32_t level_type, int32_t level);
struct rule *rule_free(struct rule *r); /* NULL */
/* Frees an array of rules that ends with NULL. NULL. */
struct rule **rules_free(struct rule **rules);
/* Returns whether both have the same pattern, exclusions, levels and filter. */
bool rule_equal(const struct rule *a, const struct rule *b);
/* Returns whether the rule matches by name and level alone. */
bool rule_matches(const struct rule *r, const char *name, int32_t loglevel);
/* Matches it, and the filter can be applied to it. */
bool rule_wants(const struct rule *r, const struct event_desc *d);
/*
 * Records why the rule does not match the event, if only the filter prevents it, and if this reason
 * explains more than the recorded one.
 */
void rule_note_mismatch(struct rule *r, const struct event_desc *d);
/* Remembers the name if it is like the pattern. */
void rule_note_similar(struct rule *r, const char *name);
/* Appends the rule as QUERY wants it. */
void rule_encode(struct ky_writer *w, const struct rule *r);

/* Returns whether a user who wrote this pattern could have meant this name. */
bool name_is_near(const char *pattern, const char *name);
/* Returns whether a user who wrote `wanted`, as it stands, could have meant this name. */
bool name_is_meant(const char *wanted, const char *name);

#endif
