/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "explain/search.h"
#include "explain/stats.h"

#define MAX_AFFIXES 256 /* beginnings and endings that are tried, and words as many */
#define NEARLY	    .02 /* of the contrast: less than that is no difference */
#define MIN_WORD    3	/* bytes: shorter ones are in many texts */

/* How often it comes. */
struct affix {
	struct ky_affix is;
	size_t affected, typical;
};

static bool is_delimiter(char c)
{
	return c && strchr("/:-.?_=@ ,;#&|()[]+\\\"", c);
}

static bool is_in_text(const char *text, const char *affix, const struct ky_affix *v)
{
	size_t length = strlen(text);

	if (length < v->length)
		return false;
	if (v->place == KY_AFFIX_INSIDE)
		return memmem(text, length, affix, v->length);
	return !memcmp(
		v->place == KY_AFFIX_BEGIN ? text : text + length - v->length, affix, v->length);
}

/* Of a text that is cut, neither the ending is known nor all of its words. */
bool ky_affix_has(const struct ky_explain *x, const struct ky_fact *fact, const struct ky_affix *v)
{
	const char *affix = ky_texts_get(&x->names, v->fact.text) + v->from;

	if (fact->type != KY_FACT_TEXT ||
		((v->is_lacking || v->place == KY_AFFIX_END) && ky_column_is_cut(fact)))
		return false;
	return is_in_text(ky_texts_get(&x->names, fact->text), affix, v) != v->is_lacking;
}

static size_t count_affix(const struct ky_search *w, uint32_t key, const struct ky_affix *v,
	struct ky_instance *const *instances, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ky_fact *fact = ky_instance_fact(instances[i], key);

		found += fact && ky_affix_has(w->x, fact, v);
	}
	return found;
}

static double explained_by_affix(
	struct ky_search *w, const struct ky_column *c, const struct ky_affix *v)
{
	bool *has = calloc(c->n + 1, sizeof(*has));
	double explained;

	if (!has) {
		w->error = -ENOMEM;
		return 0;
	}
	for (size_t i = 0; i < c->n; i++)
		has[i] = ky_affix_has(w->x, &c->facts[i], v);
	explained = ky_column_explained_by(w, c, has);
	free(has);
	return explained;
}

/*
 * Of those that come as often, a word anywhere says least. Of those that are lacking, each says
 * more that fewer typical texts lack.
 */
static bool is_better_affix(const struct ky_search *w, const struct affix *a, const struct affix *b)
{
	double more = ky_search_contrast(w, a->affected, a->typical) -
		      ky_search_contrast(w, b->affected, b->typical);

	if (fabs(more) > NEARLY)
		return more > 0;
	if (a->affected != b->affected)
		return a->affected > b->affected;
	if (a->is.is_lacking && a->typical != b->typical)
		return a->typical < b->typical;
	if ((a->is.place == KY_AFFIX_INSIDE) != (b->is.place == KY_AFFIX_INSIDE))
		return b->is.place == KY_AFFIX_INSIDE;
	return a->is.length > b->is.length;
}

/* The best ones: alone, and of those that may be a condition together with something else. */
struct tried {
	struct ky_search *w;
	uint32_t key;
	bool is_lacking;
	size_t n[2]; /* of beginnings and endings, and of words */
	struct affix alone, together;
};

static void take_better(const struct ky_search *w, struct affix *best, const struct affix *v,
	double affected, double typical, double max)
{
	if (typical <= max * affected && (!best->affected || is_better_affix(w, v, best)))
		*best = *v;
}

static void try_affix(void *arg, const struct ky_affix *is)
{
	struct tried *t = arg;
	struct ky_search *w = t->w;
	struct affix v = {.is = *is};
	double affected, typical;

	if (t->n[is->place == KY_AFFIX_INSIDE]++ >= MAX_AFFIXES)
		return;
	w->n_tests++;
	v.is.is_lacking = t->is_lacking;
	v.affected = count_affix(w, t->key, &v.is, w->f->affected.v, w->f->affected.n);
	affected = (double)v.affected / (double)w->f->affected.n;
	if (affected < .6)
		return;
	v.typical = count_affix(w, t->key, &v.is, w->d->group->typical, w->d->group->n_typical);
	typical = (double)v.typical / (double)w->d->group->n_typical;
	take_better(w, &t->alone, &v, affected, typical, .5);
	take_better(w, &t->together, &v, affected, typical, KY_MAX_OF_TYPICAL);
}

static bool differ(const struct ky_search *w, uint32_t key, const struct ky_affix *v,
	struct ky_instance *const *instances, size_t n)
{
	const struct ky_fact *first = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct ky_fact *fact = ky_instance_fact(instances[i], key);

		if (!fact || !ky_affix_has(w->x, fact, v))
			continue;
		if (first && fact->text != first->text)
			return true;
		first = fact;
	}
	return false;
}

/*
 * Texts of affected instances that have it differ, and those of typical ones that have what the
 * others lack: of one text, the value says more.
 */
static bool has_several_texts(const struct ky_search *w, uint32_t key, const struct ky_affix *v)
{
	struct ky_affix has = *v;

	has.is_lacking = false;
	return differ(w, key, v, w->f->affected.v, w->f->affected.n) &&
	       (!v->is_lacking ||
		       differ(w, key, &has, w->d->group->typical, w->d->group->n_typical));
}

void ky_affix_put(struct ky_buf *b, const struct ky_explain *x, const struct ky_affix *v)
{
	static const char *const words[][2] = {
		[KY_AFFIX_BEGIN] = {"begins with", "does not begin with"},
		[KY_AFFIX_END] = {"ends with", "does not end with"},
		[KY_AFFIX_INSIDE] = {"contains", "does not contain"}};

	ky_buf_printf(b, " %s \"%.*s\"", words[v->place][v->is_lacking], (int)v->length,
		ky_texts_get(&x->names, v->fact.text) + v->from);
}

struct texts {
	const struct ky_explain *x;
	const struct ky_affix *is;
	uint32_t key;
};

static bool has_affix(const void *arg, const struct ky_instance *i)
{
	const struct texts *t = arg;
	const struct ky_fact *fact = ky_instance_fact(i, t->key);

	return fact && ky_affix_has(t->x, fact, t->is);
}

static void add_affix(
	struct ky_search *w, const struct ky_column *c, uint32_t key, const struct affix *v)
{
	double p = ky_stats_fisher(
		v->affected, w->f->affected.n, v->typical, w->d->group->n_typical);
	double explained = explained_by_affix(w, c, &v->is);
	struct ky_condition condition = ky_column_condition(c, p, explained);
	struct ky_buf b = {0};

	if (explained < .25)
		return;
	condition.is_chance = ky_search_is_chance(w, has_affix, &(struct texts){w->x, &v->is, key});
	ky_buf_puts(&b, "when ");
	ky_column_put(&b, w, c);
	ky_affix_put(&b, w->x, &v->is);
	condition.n_brief = b.len;
	condition.contrast = ky_search_contrast(w, v->affected, v->typical);
	condition.part = (double)v->affected / (double)w->f->affected.n;
	ky_search_put_counts(&b, w, v->affected, v->typical);
	ky_search_add(w, condition, &b);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The bytes after the first one of a character in UTF-8. */
static bool is_within(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static void try_begin(size_t length, struct ky_affix v, ky_affix_try *try, void *arg)
{
	v.place = KY_AFFIX_BEGIN;
	v.from = 0;
	v.length = length;
	try(arg, &v);
}

static void try_end(const char *text, size_t from, struct ky_affix v, ky_affix_try *try, void *arg)
{
	v.place = KY_AFFIX_END;
	v.from = from;
	v.length = strlen(text) - from;
	try(arg, &v);
}

/* The first and the last character, and all up to and from delimiters: a number is one, too. */
static void each_end(const char *text, struct ky_affix v, ky_affix_try *try, void *arg)
{
	size_t n = strlen(text), first = 1, last = n ? n - 1 : 0;

	while (first < n && is_within(text[first]))
		first++;
	while (last && is_within(text[last]))
		last--;
	for (size_t k = 1; k < n; k++) {
		bool is_delimited = is_delimiter(text[k]) || is_delimiter(text[k - 1]);
		bool is_number = !is_delimited && is_digit(text[k]) != is_digit(text[k - 1]);

		if (is_delimiter(text[k]))
			try_begin(k + 1, v, try, arg);
		else if (k == first || is_number)
			try_begin(k, v, try, arg);
		if (is_delimited || k == last || is_number)
			try_end(text, k, v, try, arg);
	}
}

/* Words, and two words with what is between them: "debug", "debug=1". */
static void each_word(const char *text, struct ky_affix v, ky_affix_try *try, void *arg)
{
	v.place = KY_AFFIX_INSIDE;
	for (v.from = 0; text[v.from]; v.from++) {
		size_t to = v.from;

		if (v.from && !is_delimiter(text[v.from - 1]))
			continue;
		for (size_t n_words = 0; n_words < 2 && text[to]; n_words++) {
			to += n_words;
			while (text[to] && !is_delimiter(text[to]))
				to++;
			v.length = to - v.from;
			if (v.length >= MIN_WORD)
				try(arg, &v);
		}
	}
}

void ky_affixes_of(
	const struct ky_explain *x, const struct ky_fact *fact, ky_affix_try *try, void *arg)
{
	const struct ky_affix v = {.fact = *fact};

	if (fact->type != KY_FACT_TEXT)
		return;
	each_end(ky_texts_get(&x->names, fact->text), v, try, arg);
	each_word(ky_texts_get(&x->names, fact->text), v, try, arg);
}

static void offer_affix(const struct tried *t, const struct ky_column *c)
{
	const struct ky_search *w = t->w;

	ky_both_offer(t->w, c,
		(struct ky_predicate){.key = t->key,
			.kind = KY_HAS_AFFIX,
			.affix = t->together.is,
			.n_choices = (double)(t->n[0] + t->n[1])},
		(double)t->together.affected / (double)w->f->affected.n,
		(double)t->together.typical / (double)w->d->group->n_typical);
}

/* Looks at the texts of three of these instances. */
static void try_texts(struct tried *t, struct ky_instance *const *v, size_t n)
{
	for (size_t i = 0; i < KY_MIN(n, (size_t)3); i++) {
		const struct ky_fact *fact = ky_instance_fact(v[i * (n - 1) / 2], t->key);

		if (fact)
			ky_affixes_of(t->w->x, fact, try_affix, t);
	}
}

/* A piece that texts have is named, and not one that they lack, if it says as much. */
static bool is_said(const struct tried *has, const struct tried *lacks)
{
	const struct ky_search *w = has->w;
	const struct affix *a = &has->alone, *b = &lacks->alone;

	return a->affected && has_several_texts(w, has->key, &a->is) &&
	       ky_search_contrast(w, a->affected, a->typical) + NEARLY >=
		       ky_search_contrast(w, b->affected, b->typical);
}

/*
 * Texts that are all different may begin or end alike, or have a word in common; or they lack what
 * typical ones have.
 */
int ky_affixes_test(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	struct tried has = {.w = w, .key = key}, lacks = {.w = w, .key = key, .is_lacking = true};
	const struct tried *const both[] = {&has, &lacks};

	try_texts(&has, w->f->affected.v, w->f->affected.n);
	try_texts(&lacks, w->d->group->typical, w->d->group->n_typical);
	for (size_t i = 0; i < KY_ARRAY_SIZE(both); i++) {
		const struct tried *t = both[i];

		if (t->together.affected && has_several_texts(w, key, &t->together.is))
			offer_affix(t, c);
		if (t->alone.affected && has_several_texts(w, key, &t->alone.is) &&
			!(t->is_lacking && is_said(&has, &lacks)))
			add_affix(w, c, key, &t->alone);
	}
	return w->error;
}
