/* SPDX-License-Identifier: MIT */
#include "explain/search.h"
#include "explain/stats.h"

#define MAX_PICKED  3 /* values in one condition */
#define USUAL	    .9
#define MIN_LIMITED 10 /* affected instances, to say that no others are slow */
#define MIN_AGAIN   5  /* instances whose values came before, to say that these are slow again */

/* All values but one: parts of affected and, of that, of typical instances that have others. */
#define MIN_UNUSUAL	      .8
#define MAX_UNUSUAL	      .25
#define MIN_UNUSUAL_EXPLAINED .5

/* A value, and how often it comes. */
struct value {
	struct ky_fact fact;
	size_t affected, typical, n;
	double ns, weight; /* sums over all instances, by their weights */
};

struct values {
	KY_VEC(struct value) v; /* sorted by fact */
};

static int compare_values(const void *a, const void *b)
{
	return ky_fact_compare(&((const struct value *)a)->fact, &((const struct value *)b)->fact);
}

static struct value *find_value(struct values *values, const struct ky_fact *fact)
{
	const struct value like = {.fact = *fact};

	return values->v.n ? bsearch(&like, values->v.v, values->v.n, sizeof(like), compare_values)
			   : NULL;
}

static int collect_values(
	struct ky_search *w, const struct ky_column *c, uint32_t key, struct values *values)
{
	size_t k = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (ky_vec_add(&values->v, (struct value){.fact = c->facts[i]}) < 0)
			return -ENOMEM;
	}
	qsort(values->v.v, values->v.n, sizeof(*values->v.v), compare_values);
	for (size_t i = 0; i < values->v.n; i++) {
		if (!k || compare_values(&values->v.v[k - 1], &values->v.v[i]))
			values->v.v[k++] = values->v.v[i];
	}
	values->v.n = k;
	for (size_t i = 0; i < c->n; i++) {
		struct value *v = find_value(values, &c->facts[i]);

		if (!v)
			continue;
		v->n++;
		v->ns += c->weights[i] * c->ns[i];
		v->weight += c->weights[i];
	}
	for (size_t i = 0; i < w->f->affected.n + w->d->group->n_typical; i++) {
		bool is_affected = i < w->f->affected.n;
		const struct ky_fact *fact = ky_column_fact(w,
			is_affected ? w->f->affected.v[i]
				    : w->d->group->typical[i - w->f->affected.n],
			key);
		struct value *v = fact ? find_value(values, fact) : NULL;

		if (v)
			*(is_affected ? &v->affected : &v->typical) += 1;
	}
	return 0;
}

static int compare_frequency(const void *a, const void *b)
{
	const struct value *x = *(const struct value *const *)a,
			   *y = *(const struct value *const *)b;

	if (x->affected != y->affected)
		return x->affected > y->affected ? -1 : 1;
	return ky_fact_compare(&x->fact, &y->fact);
}

/* Several values that are one condition together. */
struct picked {
	const struct value *v[MAX_PICKED];
	size_t n, affected, typical;
	/* Of numbers: all from the first one on, or all up to the last one. */
	enum { JUST_THESE, FROM_FIRST, UP_TO_LAST } more;
};

/*
 * Whether instances with the value take longer at all: a quarter of what affected ones do. Values
 * beside the first may be there by chance.
 */
static bool is_long_value(const struct ky_search *w, const struct value *v)
{
	return v->ns / v->weight >= w->typical_ns + .25 * (w->affected_ns - w->typical_ns);
}

/* Of many values, some come twice in affected instances by chance. */
static bool is_frequent_value(const struct ky_search *w, const struct value *v, size_t n_values)
{
	return (double)n_values * ky_stats_fisher(v->affected, w->f->affected.n, v->typical,
					  w->d->group->n_typical) <
	       KY_ALPHA;
}

static int pick_values(
	const struct ky_search *w, struct values *values, size_t n_values, struct picked *picked)
{
	double na = (double)w->f->affected.n, nt = (double)w->d->group->n_typical;
	const struct value **order = calloc(values->v.n + 1, sizeof(*order));
	size_t n = 0;

	*picked = (struct picked){0};
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < values->v.n; i++) {
		const struct value *v = &values->v.v[i];

		if (v->affected >= 2 && !ky_column_is_cut(&v->fact) &&
			(double)v->affected / na >= 2 * (double)v->typical / nt)
			order[n++] = v;
	}
	qsort(order, n, sizeof(*order), compare_frequency);
	for (size_t i = 0; i < n && picked->n < MAX_PICKED; i++) {
		if (picked->n &&
			(!is_long_value(w, order[i]) || !is_frequent_value(w, order[i], n_values)))
			continue;
		picked->v[picked->n++] = order[i];
		picked->affected += order[i]->affected;
		picked->typical += order[i]->typical;
		if ((double)picked->affected >= .8 * na)
			break;
	}
	free(order);
	return 0;
}

static int compare_picked(const void *a, const void *b)
{
	return compare_values(*(const struct value *const *)a, *(const struct value *const *)b);
}

static bool is_picked_value(const struct picked *p, const struct value *v)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i] == v)
			return true;
	}
	return false;
}

/*
 * Few numbers that are slow from one on are a limit, as of retries. Not all of them were picked:
 * some are too rare to pass a test of their own. Also sorts the picked values of numbers.
 */
static void add_more(const struct ky_search *w, const struct ky_column *c,
	const struct values *values, struct picked *p)
{
	const struct value *all = values->v.v;
	size_t first, last, n_more = 0;
	bool is_upper, is_long = true;

	if (!c->is_degree || p->n < 2)
		return;
	qsort(p->v, p->n, sizeof(*p->v), compare_picked);
	first = (size_t)(p->v[0] - all);
	last = (size_t)(p->v[p->n - 1] - all);
	/* The usual values are on the other side. */
	is_upper = first >= values->v.n - 1 - last;
	for (size_t i = is_upper ? first : 0; i < (is_upper ? values->v.n : last + 1); i++) {
		if (is_picked_value(p, &all[i]))
			continue;
		is_long = is_long &&
			  all[i].ns / all[i].weight >= (w->affected_ns + w->typical_ns) / 2;
		n_more++;
	}
	if (!n_more || !is_long)
		return;
	p->more = is_upper ? FROM_FIRST : UP_TO_LAST;
	p->affected = p->typical = 0;
	for (size_t i = is_upper ? first : 0; i < (is_upper ? values->v.n : last + 1); i++) {
		p->affected += all[i].affected;
		p->typical += all[i].typical;
	}
}

/*
 * Whether nearly all instances that have the field at all have these values: a call inside that
 * typical instances do not make has its usual status.
 */
static bool is_usual(const struct ky_search *w, const struct ky_column *c, const struct picked *p)
{
	bool is_inside = c->key.kind == KY_TRAIT_CALL || c->key.kind == KY_TRAIT_CALL_END;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i]->n;
	return is_inside && (double)c->n < USUAL * (double)w->n_all &&
	       (double)n >= USUAL * (double)c->n;
}

static bool is_telling(const struct ky_search *w, const struct picked *p)
{
	double na = (double)w->f->affected.n, nt = (double)w->d->group->n_typical;

	return p->n && (double)p->affected >= .6 * na &&
	       (double)p->typical / nt <= .5 * (double)p->affected / na;
}

/*
 * Whether nearly all affected instances have this value, and far fewer typical ones: it limits the
 * cause, although most instances with the value may be as fast as others.
 */
static bool is_limiting(
	const struct ky_search *w, const struct ky_column *c, const struct picked *p)
{
	bool is_known_before = c->key.kind <= KY_TRAIT_OUTER || c->key.kind == KY_TRAIT_CALL ||
			       c->key.kind == KY_TRAIT_HOST || c->key.kind == KY_TRAIT_THREAD ||
			       c->key.kind == KY_TRAIT_PROCESS;

	return is_known_before && p->n == 1 && w->f->affected.n >= MIN_LIMITED &&
	       (double)p->affected >= KY_LIMIT_PART * (double)w->f->affected.n &&
	       ky_search_contrast(w, p->affected, p->typical) >= KY_LIMIT_CONTRAST;
}

struct timed {
	size_t value, i;
};

static int compare_timed(const void *a, const void *b)
{
	const struct timed *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->i > y->i) - (x->i < y->i);
}

/* The medians of the times of the instances with each value; by instance. */
static int find_medians(
	struct ky_search *w, const struct ky_column *c, struct values *values, double *medians)
{
	struct timed *v = calloc(c->n + 1, sizeof(*v));
	struct ky_weighted *ns = calloc(c->n + 1, sizeof(*ns));
	int r = v && ns ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < c->n; i++) {
		const struct value *value = find_value(values, &c->facts[i]);

		v[i] = (struct timed){value ? (size_t)(value - values->v.v) : SIZE_MAX, i};
	}
	if (!r)
		qsort(v, c->n, sizeof(*v), compare_timed);
	for (size_t from = 0, to; !r && from < c->n; from = to) {
		double median = w->typical_median;

		for (to = from; to < c->n && v[to].value == v[from].value; to++)
			ns[to] = (struct ky_weighted){c->ns[v[to].i], c->weights[v[to].i]};
		/* A value that comes once or twice predicts nothing. */
		if (to - from > 2)
			median = ky_stats_weighted_median(ns + from, to - from);
		for (size_t i = from; i < to; i++)
			medians[v[i].i] = median;
	}
	free(v);
	free(ns);
	return r;
}

/* The mean time of the other instances with the same value, or their median. */
static double explained_by_values(
	struct ky_search *w, const struct ky_column *c, struct values *values, double *ret_by_means)
{
	double *expected = calloc(c->n + 1, sizeof(*expected)), explained = 0;
	double *medians = calloc(c->n + 1, sizeof(*medians));

	if (!expected || !medians || find_medians(w, c, values, medians) < 0)
		w->error = -ENOMEM;
	for (size_t i = 0; i < c->n && !w->error; i++) {
		const struct value *v = find_value(values, &c->facts[i]);

		expected[i] = v && v->n > 2 ? ky_column_mean_without(c, i, v->ns, v->weight)
					    : w->all_ns;
	}
	if (!w->error) {
		*ret_by_means = ky_column_explained(w, c, expected, false);
		explained = KY_MAX(*ret_by_means, ky_column_explained(w, c, medians, true));
	}
	free(expected);
	free(medians);
	return explained;
}

static bool has_value(const struct picked *p, const struct ky_fact *fact)
{
	if (p->more == FROM_FIRST)
		return ky_fact_compare(fact, &p->v[0]->fact) >= 0;
	if (p->more == UP_TO_LAST)
		return ky_fact_compare(fact, &p->v[p->n - 1]->fact) <= 0;
	for (size_t k = 0; k < p->n; k++) {
		if (!ky_fact_compare(fact, &p->v[k]->fact))
			return true;
	}
	return false;
}

#define MOVE_P .02 /* at least 6 moves */

/* A thread's stay where it has the value, or has not, and the one before. */
struct stay {
	bool is_there;
	size_t n;
	double ns, before; /* sum; mean of the stay before, or -1 */
};

/* Counts the move from one stay to the next. */
static void count_move(const struct stay *s, size_t *moves, size_t *longer)
{
	double mean = s->n ? s->ns / (double)s->n : 0;

	if (!s->n || s->before < 0)
		return;
	(*moves)++;
	*longer += s->is_there ? mean > s->before : mean < s->before;
}

/*
 * Whether threads take longer on this processor than just before and after on another. They stay on
 * one for a while: then the time may be the reason, as when all of them begin. A sign test of the
 * moves decides. Threads that never move say nothing of that.
 */
static bool is_slow_after_moves(
	struct ky_search *w, const struct ky_column *c, const struct picked *p)
{
	struct stay *stays = calloc(w->x->threads.n + 1, sizeof(*stays));
	size_t moves = 0, longer = 0;

	if (!stays)
		w->error = -ENOMEM;
	for (size_t i = 0; stays && i < c->n; i++) {
		struct stay *s = &stays[c->instances[i]->thread];
		bool is_there = has_value(p, &c->facts[i]);

		if (!s->n) {
			*s = (struct stay){.is_there = is_there, .before = -1};
		} else if (s->is_there != is_there) {
			count_move(s, &moves, &longer);
			*s = (struct stay){.is_there = is_there, .before = s->ns / (double)s->n};
		}
		s->ns += c->ns[i];
		s->n++;
	}
	for (size_t i = 0; stays && i < w->x->threads.n; i++)
		count_move(&stays[i], &moves, &longer);
	free(stays);
	return !moves || ky_stats_binomial(moves, longer, .5) < MOVE_P;
}

/*
 * Three quarters of the instances with these values take twice as long as the others do: a
 * processor that is merely busy delays some of them.
 */
static bool is_slow_value(const struct ky_column *c, const struct picked *p)
{
	double *ns[2] = {calloc(c->n + 1, sizeof(double)), calloc(c->n + 1, sizeof(double))};
	size_t n[2] = {0};
	double lengths[2];

	for (size_t i = 0; ns[0] && ns[1] && i < c->n; i++) {
		bool has = has_value(p, &c->facts[i]);

		ns[has][n[has]++] = c->ns[i];
	}
	for (size_t k = 0; k < 2; k++) {
		ky_stats_sort(ns[k], n[k]);
		lengths[k] = ky_stats_quantile(ns[k], n[k], k ? .25 : .5);
		free(ns[k]);
	}
	return n[0] && n[1] && lengths[1] > 2 * lengths[0];
}

struct picked_values {
	const struct ky_search *w;
	const struct picked *p;
	uint32_t key;
};

static bool has_picked(const void *arg, const struct ky_instance *i)
{
	const struct picked_values *v = arg;
	const struct ky_fact *fact = ky_column_fact(v->w, i, v->key);

	return fact && has_value(v->p, fact);
}

static int compare_facts(const void *a, const void *b)
{
	return ky_fact_compare(a, b);
}

/*
 * Whether values that were slow when they came for the first time are slow again: rare values are
 * often new, and may be slow for what they are. field: the key of the values.
 */
static bool is_slow_again(struct ky_search *w, uint32_t key, uint32_t field)
{
	struct ky_fact *facts = calloc(w->f->affected.n + 1, sizeof(*facts));
	double ns = 0;
	size_t n = 0, n_again = 0;

	if (!facts)
		w->error = -ENOMEM;
	for (size_t i = 0; facts && i < w->f->affected.n; i++) {
		const struct ky_fact *fact = ky_instance_fact(w->f->affected.v[i], field);

		if (fact)
			facts[n++] = *fact;
	}
	if (n)
		qsort(facts, n, sizeof(*facts), compare_facts);
	for (size_t i = 0; n && i < w->n_all; i++) {
		const struct ky_fact *is_new = ky_instance_fact(w->all[i], key);
		const struct ky_fact *fact = ky_instance_fact(w->all[i], field);

		if (!is_new || is_new->number || !fact ||
			!bsearch(fact, facts, n, sizeof(*facts), compare_facts))
			continue;
		ns += ky_finding_ns(w->f, w->all[i]);
		n_again++;
	}
	free(facts);
	return n_again >= MIN_AGAIN && ns / (double)n_again > (w->affected_ns + w->typical_ns) / 2;
}

/* Whether it is said of values that they are new, although they are slow again. */
static bool is_not_of_new(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	if (c->key.kind != KY_TRAIT_NEW && c->key.kind != KY_TRAIT_NEW_OF_THREAD)
		return false;
	for (uint32_t k = 0; k < w->x->keys.n; k++) {
		if (w->x->keys.v[k].kind == KY_TRAIT_BEGIN && w->x->keys.v[k].field == c->key.field)
			return is_slow_again(w, key, k);
	}
	return false;
}

/* How the instance follows others. */
static void put_place(
	struct ky_buf *b, const struct ky_search *w, const struct ky_column *c, bool is_set)
{
	bool is_of_thread = c->key.kind == KY_TRAIT_FIRST_OF_THREAD ||
			    c->key.kind == KY_TRAIT_NEW_OF_THREAD ||
			    c->key.kind == KY_TRAIT_CHANGED_OF_THREAD;

	if (c->key.kind <= KY_TRAIT_FIRST_OF_THREAD) {
		ky_buf_printf(b, "it is the first%s after %s", is_of_thread ? " of its thread" : "",
			ky_texts_get(&w->x->names, c->key.name));
		return;
	}
	ky_column_put(b, w, c);
	ky_buf_puts(b, c->key.kind <= KY_TRAIT_NEW_OF_THREAD ? " comes for the first time"
		       : is_set				     ? " differs from the instance before"
							     : " is that of the instance before");
	ky_buf_puts(b, is_of_thread ? " in its thread" : "");
}

/* "tenant = "mega", "acme"", "retries ≥ 3", "thread 12 (web)". */
static void put_values(struct ky_buf *b, const struct ky_search *w, const struct ky_column *c,
	const struct picked *p, bool is_own)
{
	static const char *const signs[] = {
		[JUST_THESE] = " = ", [FROM_FIRST] = " ≥ ", [UP_TO_LAST] = " ≤ "};
	size_t from = p->more == UP_TO_LAST ? p->n - 1 : 0;
	size_t to = p->more == FROM_FIRST ? 1 : p->n;

	if (!is_own) {
		ky_column_put(b, w, c);
		ky_buf_puts(b, signs[p->more]);
	}
	for (size_t i = from; i < to; i++) {
		ky_buf_puts(b, i > from ? ", " : "");
		ky_column_put_fact(b, w, c, &p->v[i]->fact);
	}
}

static void add_picked(struct ky_search *w, const struct ky_column *c, uint32_t key,
	const struct picked *p, double chance, double explained, double by_means)
{
	static const char *const words[] = {[KY_TRAIT_HOST] = "only on host ",
		[KY_TRAIT_THREAD] = "only in ",
		[KY_TRAIT_PROCESS] = "only in process ",
		[KY_TRAIT_CPU] = "only on processor ",
		[KY_TRAIT_CALLER] = "when called in "};
	bool is_own = c->key.kind >= KY_TRAIT_HOST && c->key.kind <= KY_TRAIT_CALLER;
	bool is_presence = ky_column_is_presence(&c->key);
	bool is_place = c->key.kind >= KY_TRAIT_FIRST && c->key.kind < KY_TRAIT_CONTEXT;
	struct ky_condition condition = ky_column_condition(c, chance, explained);
	struct ky_buf b = {0};

	condition.by_means = by_means;
	/* Not to follow an event, and a value that came before, are no reasons. */
	if (is_place && !p->v[0]->fact.number && c->key.kind < KY_TRAIT_CHANGED)
		return;
	if (is_not_of_new(w, c, key))
		return;
	ky_buf_puts(&b, is_own ? words[c->key.kind] : "when ");
	if (is_place) {
		put_place(&b, w, c, p->v[0]->fact.number);
	} else if (is_presence) {
		ky_column_put(&b, w, c);
		ky_buf_puts(&b, p->v[0]->fact.number ? " comes in it" : " does not come in it");
	} else {
		put_values(&b, w, c, p, is_own);
	}
	if (c->key.kind == KY_TRAIT_END)
		ky_buf_puts(&b, ", known at the end only");
	condition.n_brief = b.len;
	condition.contrast *= ky_search_contrast(w, p->affected, p->typical);
	condition.part = (double)p->affected / (double)w->f->affected.n;
	/* Something else that comes says less than what is known of the instance. */
	if (is_presence && w->f->kind != KY_FINDING_LONGER)
		condition.contrast *= .8;
	if (c->key.kind == KY_TRAIT_CPU && is_slow_value(c, p) && is_slow_after_moves(w, c, p)) {
		condition.is_law = true;
		condition.rank = 1;
	}
	ky_search_put_counts(&b, w, p->affected, p->typical);
	ky_search_mark(w, &condition, has_picked, &(struct picked_values){w, p, key});
	ky_search_add(w, condition, &b);
}

/* The value that most affected instances have. */
static void offer_value(struct ky_search *w, const struct ky_column *c, uint32_t key,
	const struct values *values, size_t n_values)
{
	const struct value *most = NULL;

	for (size_t i = 0; i < values->v.n; i++) {
		if (!ky_column_is_cut(&values->v.v[i].fact) &&
			(!most || values->v.v[i].affected > most->affected))
			most = &values->v.v[i];
	}
	if (most)
		ky_both_offer(w, c,
			(struct ky_predicate){
				.key = key, .fact = most->fact, .n_choices = (double)n_values},
			(double)most->affected / (double)w->f->affected.n,
			(double)most->typical / (double)w->d->group->n_typical);
}

/* --- all values but one --- */

/* Values that are no names of something else, and of which one may be the default. */
static bool has_default(const struct ky_column *c)
{
	return c->key.kind == KY_TRAIT_BEGIN || c->key.kind == KY_TRAIT_OUTER ||
	       c->key.kind == KY_TRAIT_CALL || c->key.kind == KY_TRAIT_CALL_END ||
	       c->key.kind == KY_TRAIT_END ||
	       (c->key.kind == KY_TRAIT_INNER && !ky_column_is_presence(&c->key));
}

/* The value that most typical instances have, and how often all others come. */
static const struct value *find_usual(
	const struct values *values, struct value *ret_others, size_t *ret_n_others)
{
	const struct value *usual = values->v.v;

	*ret_others = (struct value){0};
	*ret_n_others = 0;
	for (size_t i = 1; i < values->v.n; i++) {
		if (values->v.v[i].typical > usual->typical)
			usual = &values->v.v[i];
	}
	for (size_t i = 0; i < values->v.n; i++) {
		if (&values->v.v[i] == usual)
			continue;
		ret_others->affected += values->v.v[i].affected;
		ret_others->typical += values->v.v[i].typical;
		*ret_n_others += values->v.v[i].affected > 0;
	}
	return usual;
}

struct other_value {
	const struct ky_search *w;
	const struct value *usual;
	uint32_t key;
};

static bool has_other_value(const void *arg, const struct ky_instance *i)
{
	const struct other_value *v = arg;
	const struct ky_fact *fact = ky_column_fact(v->w, i, v->key);

	return fact && ky_fact_compare(fact, &v->usual->fact);
}

static void add_unusual(struct ky_search *w, const struct ky_column *c, const struct other_value *v,
	const struct value *others, double explained)
{
	double p = ky_stats_fisher(
		others->affected, w->f->affected.n, others->typical, w->d->group->n_typical);
	struct ky_condition condition = ky_column_condition(c, p, explained);
	struct ky_buf b = {0};

	ky_buf_puts(&b, "when ");
	ky_column_put(&b, w, c);
	ky_buf_puts(&b, " ≠ ");
	ky_column_put_fact(&b, w, c, &v->usual->fact);
	if (c->key.kind == KY_TRAIT_END)
		ky_buf_puts(&b, ", known at the end only");
	condition.n_brief = b.len;
	condition.is_other = true;
	condition.contrast *= ky_search_contrast(w, others->affected, others->typical);
	condition.part = (double)others->affected / (double)w->f->affected.n;
	ky_search_put_counts(&b, w, others->affected, others->typical);
	ky_search_mark(w, &condition, has_other_value, v);
	ky_search_add(w, condition, &b);
}

/* All but the usual value are slow, and they are more than can be named: a default is fast. */
static void test_unusual(
	struct ky_search *w, const struct ky_column *c, uint32_t key, const struct values *values)
{
	struct value others;
	size_t n_others;
	struct other_value v = {w, find_usual(values, &others, &n_others), key};
	double a = (double)others.affected / (double)w->f->affected.n;
	double b = (double)others.typical / (double)w->d->group->n_typical;
	double usual = (double)v.usual->typical / (double)w->d->group->n_typical, explained = 0;
	bool *has;

	w->n_tests++;
	if ((n_others <= MAX_PICKED && 2 * n_others <= values->v.n) || a < MIN_UNUSUAL ||
		b > MAX_UNUSUAL * a || usual < 1 - MAX_UNUSUAL || ky_column_is_cut(&v.usual->fact))
		return;
	has = calloc(c->n + 1, sizeof(*has));
	if (!has)
		w->error = -ENOMEM;
	for (size_t i = 0; has && i < c->n; i++)
		has[i] = ky_fact_compare(&c->facts[i], &v.usual->fact);
	if (has)
		explained = ky_column_explained_by(w, c, has);
	free(has);
	if (explained >= MIN_UNUSUAL_EXPLAINED)
		add_unusual(w, c, &v, &others, explained);
}

int ky_values_test(struct ky_search *w, const struct ky_column *c, uint32_t key)
{
	struct values values = {0};
	struct picked picked = {0};
	size_t n_values = 0;
	int r = collect_values(w, c, key, &values);

	for (size_t i = 0; i < values.v.n; i++)
		n_values += values.v.v[i].affected > 0;
	if (!r)
		r = pick_values(w, &values, n_values, &picked);
	w->n_tests += n_values;
	if (!r)
		add_more(w, c, &values, &picked);
	if (!r && values.v.n > 1)
		offer_value(w, c, key, &values, n_values);
	if (!r && values.v.n > 1 && is_telling(w, &picked) && 2 * picked.n <= values.v.n &&
		!is_usual(w, c, &picked)) {
		double p = ky_stats_fisher(
			picked.affected, w->f->affected.n, picked.typical, w->d->group->n_typical);
		double by_means = 0, explained = explained_by_values(w, c, &values, &by_means);

		if (explained >= KY_MIN_EXPLAINED || is_limiting(w, c, &picked))
			add_picked(w, c, key, &picked, p * (picked.n == 1 ? 1 : (double)n_values),
				explained, by_means);
	}
	if (!r && values.v.n > 1 && has_default(c))
		test_unusual(w, c, key, &values);
	ky_vec_deinit(&values.v);
	return r ? r : w->error;
}
