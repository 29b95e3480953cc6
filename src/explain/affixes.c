/* SPDX-License-Identifier: MIT */
#include "explain/search.h"
#include "explain/stats.h"

#define MAX_AFFIXES 256 /* beginnings and endings that are tried, and words as many */
#define MIN_WORD    3	/* bytes: shorter ones are in many texts */

enum place {
	AT_BEGIN,
	AT_END,
	INSIDE,
};

/* A beginning, an ending or a word of texts, and how often it comes. */
struct affix {
	struct ky_fact fact; /* a text that has it */
	size_t from, length; /* its bytes there */
	enum place place;
	size_t affected, typical;
};

static bool is_delimiter(char c)
{
	return c && strchr("/:-.?_=@ ,;#&|()[]+\\\"", c);
}

/* The ending of a text that is cut is not known. */
static bool has_affix(const struct ky_search *w, const struct ky_fact *fact, const struct affix *v)
{
	const char *affix = ky_texts_get(&w->x->names, v->fact.text) + v->from;
	const char *text = fact->type == KY_FACT_TEXT ? ky_texts_get(&w->x->names, fact->text) : "";
	size_t length = strlen(text);

	if (length < v->length)
		return false;
	if (v->place == INSIDE)
		return memmem(text, length, affix, v->length);
	if (v->place == AT_BEGIN)
		return !memcmp(text, affix, v->length);
	return !ky_column_is_cut(fact) && !memcmp(text + length - v->length, affix, v->length);
}

static size_t count_affix(const struct ky_search *w, uint32_t key, const struct affix *v,
	struct ky_instance *const *instances, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ky_fact *fact = ky_instance_fact(instances[i], key);

		found += fact && has_affix(w, fact, v);
	}
	return found;
}

static double explained_by_affix(
	struct ky_search *w, const struct ky_column *c, const struct affix *v)
{
	bool *has = calloc(c->n + 1, sizeof(*has));
	double explained;

	if (!has) {
		w->error = -ENOMEM;
		return 0;
	}
	for (size_t i = 0; i < c->n; i++)
		has[i] = has_affix(w, &c->facts[i], v);
	explained = ky_column_explained_by(w, c, has);
	free(has);
	return explained;
}

/* Of those that come as often, a word anywhere says least. */
static bool is_better_affix(const struct affix *a, const struct affix *b)
{
	if (a->affected != b->affected)
		return a->affected > b->affected;
	if ((a->place == INSIDE) != (b->place == INSIDE))
		return b->place == INSIDE;
	return a->length > b->length;
}

static void try_affix(
	struct ky_search *w, uint32_t key, struct affix *best, struct affix v, size_t *n_tried)
{
	double na = (double)w->f->affected.n, nt = (double)w->d->group->n_typical;

	if (!v.length || *n_tried >= MAX_AFFIXES)
		return;
	++*n_tried;
	v.affected = count_affix(w, key, &v, w->f->affected.v, w->f->affected.n);
	if ((double)v.affected < .6 * na || (best->length && !is_better_affix(&v, best)))
		return;
	v.typical = count_affix(w, key, &v, w->d->group->typical, w->d->group->n_typical);
	if ((double)v.typical / nt <= .5 * (double)v.affected / na)
		*best = v;
}

/* Texts of affected instances that have it differ: of one text, the value says more. */
static bool has_several_texts(const struct ky_search *w, uint32_t key, const struct affix *v)
{
	for (size_t i = 0; i < w->f->affected.n; i++) {
		const struct ky_fact *fact = ky_instance_fact(w->f->affected.v[i], key);

		if (fact && fact->text != v->fact.text && has_affix(w, fact, v))
			return true;
	}
	return false;
}

static void add_affix(struct ky_search *w, const struct ky_column *c, uint32_t key,
	const struct affix *v, double p)
{
	static const char *const words[] = {
		[AT_BEGIN] = "begins with", [AT_END] = "ends with", [INSIDE] = "contains"};
	double explained = explained_by_affix(w, c, v);
	struct ky_condition condition = ky_column_condition(c, p, explained);
	struct ky_buf b = {0};

	if (explained < .25 || !has_several_texts(w, key, v))
		return;
	ky_buf_puts(&b, "when ");
	ky_column_put(&b, w, c);
	ky_buf_printf(&b, " %s \"%.*s\"", words[v->place], (int)v->length,
		ky_texts_get(&w->x->names, v->fact.text) + v->from);
	condition.n_brief = b.len;
	condition.contrast = ky_search_contrast(w, v->affected, v->typical);
	ky_search_put_counts(&b, w, v->affected, v->typical);
	ky_search_add(w, condition, &b);
}

static void try_affixes(struct ky_search *w, uint32_t key, const struct ky_fact *fact,
	struct affix *best, size_t *n_tried)
{
	const char *text = ky_texts_get(&w->x->names, fact->text);
	size_t n = strlen(text);

	for (size_t k = 1; k < n; k++) {
		if (is_delimiter(text[k]))
			try_affix(w, key, best, (struct affix){.fact = *fact, .length = k + 1},
				n_tried);
		if (is_delimiter(text[k]) || is_delimiter(text[k - 1]))
			try_affix(w, key, best,
				(struct affix){
					.fact = *fact, .from = k, .length = n - k, .place = AT_END},
				n_tried);
	}
}

/* Words, and two words with what is between them: "debug", "debug=1". */
static void try_words(struct ky_search *w, uint32_t key, const struct ky_fact *fact,
	struct affix *best, size_t *n_tried)
{
	const char *text = ky_texts_get(&w->x->names, fact->text);

	for (size_t from = 0; text[from]; from++) {
		size_t to = from;

		if (from && !is_delimiter(text[from - 1]))
			continue;
		for (size_t n_words = 0; n_words < 2 && text[to]; n_words++) {
			to += n_words;
			while (text[to] && !is_delimiter(text[to]))
				to++;
			if (to - from >= MIN_WORD)
				try_affix(w, key, best,
					(struct affix){.fact = *fact,
						.from = from,
						.length = to - from,
						.place = INSIDE},
					n_tried);
		}
	}
}

/*
 * Texts that are all different may begin or end alike, or have a word in common. Three of the
 * affected ones are looked at.
 */
int ky_affixes_test(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	struct affix best = {0};
	size_t n_tried = 0, n_words = 0;

	for (size_t i = 0; i < KY_MIN(w->f->affected.n, (size_t)3); i++) {
		const struct ky_fact *fact = ky_instance_fact(
			w->f->affected.v[i * (w->f->affected.n - 1) / 2], key);

		if (!fact || fact->type != KY_FACT_TEXT)
			continue;
		try_affixes(w, key, fact, &best, &n_tried);
		try_words(w, key, fact, &best, &n_words);
	}
	w->n_tests += n_tried + n_words;
	if (best.length)
		add_affix(w, c, key, &best,
			ky_stats_fisher(best.affected, w->f->affected.n, best.typical,
				w->d->group->n_typical));
	return w->error;
}
