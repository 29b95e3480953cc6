/* SPDX-License-Identifier: MIT */
/*
 * The search for conditions of one finding (conditions.h): what all kinds of conditions share. Each
 * kind is a file of its own and adds what it found to the search.
 */
#ifndef EXPLAIN_SEARCH_H
#define EXPLAIN_SEARCH_H

#include "base/buf.h"
#include "explain/difference.h"
#include "explain/shifts.h"

#define KY_MANY_VALUES 8 /* numbers with more different values are compared as sizes */

/* A beginning, an ending or a word of texts. */
struct ky_affix {
	struct ky_fact fact; /* a text that has it */
	size_t from, length; /* its bytes there */
	enum ky_affix_place { KY_AFFIX_BEGIN, KY_AFFIX_END, KY_AFFIX_INSIDE } place;
	bool is_lacking; /* texts that do not have it */
};

/* Numbers have one remainder, or one bit. */
struct ky_likeness {
	uint64_t divisor, rest; /* or */
	uint64_t bit;		/* 0: it is a remainder */
	bool is_unset;		/* of the bit */
};

/* A property of one field that affected instances have, and fewer typical ones. */
struct ky_predicate {
	uint32_t key;
	enum ky_predicate_kind {
		KY_HAS_VALUE,
		KY_HAS_AT_LEAST,
		KY_HAS_AT_MOST,
		KY_HAS_AFFIX,
		KY_HAS_LIKENESS
	} kind;
	struct ky_fact fact;
	double at;
	struct ky_affix affix;
	struct ky_likeness likeness;
	double contrast;
	double n_choices; /* from which it was chosen */
};

#define KY_MAX_PREDICATES 12
/* Of two or three properties together, each may be as frequent in typical instances. */
#define KY_MAX_OF_TYPICAL .75

struct ky_search {
	struct ky_explain *x;
	struct ky_difference *d;
	struct ky_finding *f;
	struct ky_instance *const *all;
	size_t n_all;
	struct ky_shifts shifts;	/* of all; empty with two traces */
	double affected_ns, typical_ns; /* means of the finding */
	double affected_median, typical_median;
	double all_ns;
	size_t n_tests;
	KY_VEC(struct ky_condition) found;
	struct ky_predicate
		predicates[KY_MAX_PREDICATES]; /* the greatest contrasts, in any order */
	size_t n_predicates;
	int error;
};

/*
 * Adds a condition; its n_brief is 0: all of the text enters the sentence. Takes and frees the
 * text.
 */
void ky_search_add(struct ky_search *w, struct ky_condition c, struct ky_buf *text);
/* Whether affected instances have it because runs of instances meet by chance (shifts.h). */
bool ky_search_is_chance(struct ky_search *w, ky_shifts_has *has, const void *arg);
/* Stores which affected instances have what the condition is about, and whether by chance. */
void ky_search_mark(
	struct ky_search *w, struct ky_condition *c, ky_shifts_has *has, const void *arg);
/* " (35 of 38 of these, 0 % of typical ones)". */
void ky_search_put_counts(
	struct ky_buf *b, const struct ky_search *w, size_t affected, size_t typical);
/* Part of affected, less part of typical instances. */
double ky_search_contrast(const struct ky_search *w, size_t affected, size_t typical);

/* Whether a span of that name comes inside instances. */
bool ky_search_is_inside(const struct ky_search *w, uint32_t name);

/* --- column.c: one field over all instances --- */

enum ky_join {
	KY_JOIN_PRODUCT,
	KY_JOIN_DIFFERENCE, /* less the other one */
	KY_JOIN_SUM,
};

struct ky_column {
	struct ky_trait_key key;
	/* Two numbers together: 1 + the other one's key, or 0; what they have to explain. */
	uint32_t by;
	enum ky_join join;
	double min_explained;
	bool is_number; /* a size, not one of few values */
	bool is_hex;	/* an address, or the like: ranges may mean something, sizes do not */
	/* One of few numbers, which may be names or degrees. numbers: their order, from 0. */
	bool is_degree;
	double degrees[KY_MANY_VALUES]; /* in ascending order */
	bool is_length;			/* the length of a text */
	size_t n;
	struct ky_instance *
		*instances;    /* owned; in order of their begins; all that have the field */
	struct ky_fact *facts; /* owned */
	double *numbers;       /* owned */
	double *ns;	       /* owned; what the finding takes in each */
	double *weights;       /* owned; how many instances of the trace each stands for */
	size_t n_values;       /* different ones; KY_MANY_VALUES + 1: more than that */
};

/* 0 or -ENOMEM; then there is nothing to free. */
int ky_column_make(struct ky_search *w, struct ky_column *c, uint32_t key, bool is_length);
void ky_column_free(struct ky_column *c);
/* Whether the key says that an event comes inside. */
bool ky_column_is_presence(const struct ky_trait_key *key);
/* The fact of an instance; NULL: it has none. An event that does not come is the number 0. */
const struct ky_fact *ky_column_fact(
	const struct ky_search *w, const struct ky_instance *i, uint32_t key);
/* The number of a fact, or NAN. */
double ky_column_number(const struct ky_column *c, const struct ky_fact *f);
/* Joins a number of the column with that of the fact beside it. */
double ky_column_combine(const struct ky_column *c, double number, double other);
/* The sorted numbers of a group's instances; NULL without memory. The caller frees them. */
double *ky_column_numbers(const struct ky_column *c, uint32_t key, struct ky_instance *const *v,
	size_t n, size_t *ret_n);
/* "total", "size of db:query", "length of path". */
void ky_column_put(struct ky_buf *b, const struct ky_search *w, const struct ky_column *c);
/* Only the beginning of the text is known: others may be equal to it or not. */
bool ky_column_is_cut(const struct ky_fact *f);
void ky_column_put_fact(struct ky_buf *b, const struct ky_search *w, const struct ky_column *c,
	const struct ky_fact *f);
/* A condition about the field, without text. */
struct ky_condition ky_column_condition(const struct ky_column *c, double p, double explained);
/*
 * How much of the difference a prediction explains: one time for each instance of the column. It is
 * measured by means, or by medians where the machine's noise makes some instances much longer.
 */
double ky_column_explained(const struct ky_search *w, const struct ky_column *c,
	const double *expected, bool by_medians);
/* The mean of others than i, whose weighted sum and weight these are, with i; 0: there are none. */
double ky_column_mean_without(const struct ky_column *c, size_t i, double sum, double weight);
/* Likewise, by the means of the other instances that have something, or do not. */
double ky_column_explained_by(struct ky_search *w, const struct ky_column *c, const bool *has);
/* Identifiers and counters: they rise with time in their thread, and say what time says. */
bool ky_column_rises(const struct ky_column *c);
/* A field of the end like elapsed_us: proportional to the duration. */
bool ky_column_is_duration(const struct ky_search *w, const struct ky_column *c);

/* --- the kinds: 0 or -ENOMEM --- */

/* Numbers with which the amount grows, or beyond which it is there. */
int ky_sizes_test(struct ky_search *w, const struct ky_column *c, uint32_t key);
/* Products, differences and sums of two sizes, which alone say less. After the fields alone. */
int ky_products_test(struct ky_search *w);
/* Numbers with one remainder, or one bit. */
int ky_residues_test(struct ky_search *w, const struct ky_column *c, uint32_t key);
/* Values, alone or up to three together. */
int ky_values_test(struct ky_search *w, const struct ky_column *c, uint32_t key);
/* Texts that are all different may begin or end alike, or have a word in common. */
int ky_affixes_test(struct ky_search *w, const struct ky_column *c, uint32_t key);
/* Affected instances that come each time the numbers add up to so much. */
int ky_sums_test(struct ky_search *w, const struct ky_column *c, uint32_t key);
/* Two or three properties that are no condition alone. After the other kinds. */
int ky_both_test(struct ky_search *w);
/* Parts of affected and of typical instances that have it. */
void ky_both_offer(struct ky_search *w, const struct ky_column *c, struct ky_predicate p,
	double affected, double typical);

typedef void ky_affix_try(void *arg, const struct ky_affix *v);
/* All beginnings, endings and words of a text. */
void ky_affixes_of(
	const struct ky_explain *x, const struct ky_fact *fact, ky_affix_try *try, void *arg);
bool ky_affix_has(const struct ky_explain *x, const struct ky_fact *fact, const struct ky_affix *v);
/* " begins with "/admin/"". */
void ky_affix_put(struct ky_buf *b, const struct ky_explain *x, const struct ky_affix *v);
bool ky_likeness_has(const struct ky_likeness *l, const struct ky_fact *fact);
/* The divisor of that number whose remainders are tried; 0: there are no more. */
uint64_t ky_likeness_divisor(size_t n);
/* " % 100 = 7", " & 0x8". */
void ky_likeness_put(struct ky_buf *b, const struct ky_likeness *l);
/* Two fields that are the same, or are not. After the other kinds. */
int ky_alike_test(struct ky_search *w);
/* Spans of other threads that run at the same time. */
int ky_companions_test(struct ky_search *w);

#endif
