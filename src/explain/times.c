/* SPDX-License-Identifier: MIT */
#include "explain/times.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "explain/stats.h"
#include "explain/words.h"

#define NS_PER_S    1000000000
#define N_TREND	    16
#define MIN_STRETCH 15 /* instances in one stretch of the trace that are a reason */

enum scope {
	OF_TRACE,
	OF_THREAD,
	OF_PROCESS,
	N_SCOPES,
};

struct work {
	struct ky_times *times;
	const struct ky_explain *x;
	const struct ky_finding *f;
	struct ky_instance *const *all;
	size_t n_all;
	size_t n_trace; /* instances that began in the trace */
	double from_ns; /* of slow instances */
	double weight;	/* how many slow ones of the trace each affected one stands for */
	int error;
};

static const char *const scope_names[] = {"the trace", "each thread", "each process"};

/* "1st", "22nd", "13th", "64th". Returns buf. */
static const char *put_ordinal(char *buf, size_t size, uint64_t n)
{
	static const char *const endings[] = {"th", "st", "nd", "rd"};
	bool teen = n % 100 >= 11 && n % 100 <= 13;

	snprintf(buf, size, "%" PRIu64 "%s", n, n % 10 > 3 || teen ? "th" : endings[n % 10]);
	return buf;
}

const char *ky_times_clock(char *buf, size_t size, int64_t ns)
{
	int64_t fraction = (ns % NS_PER_S + NS_PER_S) % NS_PER_S;
	time_t second = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
	char text[32] = "00:00:00";
	struct tm tm;

	if (localtime_r(&second, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	snprintf(buf, size, "%s.%09" PRId64, text, fraction);
	return buf;
}

/* The caller frees it. NULL without memory, which is noted. */
static void *new_array(struct work *w, size_t n, size_t size)
{
	void *v = calloc(n + 1, size);

	if (!v)
		w->error = -ENOMEM;
	return v;
}

/* The evidence, in brackets behind the text, does not enter the sentence. */
static void add_time(struct work *w, double explained, int rank, const char *text)
{
	const char *evidence = strstr(text, " (");
	struct ky_condition c = {.text = strdup(text),
		.n_brief = evidence ? (size_t)(evidence - text) : strlen(text),
		.explained = explained,
		.contrast = 1,
		.rank = rank,
		.about = KY_ABOUT_TIME};

	if (!c.text)
		w->error = -ENOMEM;
	else if (w->times->n == KY_MAX_TIMES)
		free(c.text);
	else
		w->times->v[w->times->n++] = c;
}

/* --- the first ones --- */

static uint32_t ordinal_in(const struct ky_instance *i, enum scope scope)
{
	return scope == OF_TRACE    ? i->ordinal
	       : scope == OF_THREAD ? i->thread_ordinal
				    : i->process_ordinal;
}

static uint32_t group_in(const struct ky_explain *x, const struct ky_instance *i, enum scope scope)
{
	return scope == OF_TRACE    ? 0
	       : scope == OF_THREAD ? i->thread
				    : x->threads.v[i->thread]->process;
}

/* How many instances are among the first n of their groups, and how many groups there are. */
static size_t count_first(const struct work *w, enum scope scope, size_t n, size_t *ret_groups)
{
	size_t sum = 0;

	*ret_groups = 1;
	if (scope == OF_TRACE)
		return KY_MIN(n, w->n_trace);
	*ret_groups = 0;
	for (size_t i = 0; i < w->x->threads.n; i++) {
		const struct ky_explain_thread *t = w->x->threads.v[i];
		size_t has = scope == OF_THREAD ? t->n_instances : t->n_process_instances;

		if (t->is_second != w->f->affected.v[0]->is_second || !has)
			continue;
		sum += KY_MIN(n, has);
		++*ret_groups;
	}
	return sum;
}

struct first {
	double density;
	double agreement; /* with the affected ones: 1 if they are just these */
	size_t n, hits, size;
	enum scope scope;
};

/* How many of the trace these affected ones stand for. */
static size_t of_trace(const struct work *w, size_t n)
{
	return KY_MIN((size_t)llround(w->weight * (double)n), w->n_trace);
}

static void try_first(const struct work *w, enum scope scope, size_t n, struct first *best)
{
	size_t n_affected = of_trace(w, w->f->affected.n), hits = 0, n_groups;
	size_t size = count_first(w, scope, n, &n_groups);
	struct first f = {.n = n, .size = size, .scope = scope};

	for (size_t i = 0; i < w->f->affected.n; i++)
		hits += ordinal_in(w->f->affected.v[i], scope) < n;
	hits = KY_MIN(of_trace(w, hits), size);
	f.hits = hits;
	f.density = (double)hits / (double)KY_MAX(size, (size_t)1);
	f.agreement = 2 * (double)hits / (double)KY_MAX(size + n_affected, (size_t)1);
	if (f.agreement <= best->agreement || (double)hits < .6 * (double)n_affected ||
		f.density < .4 || hits > size || 4 * size >= w->n_trace ||
		n_affected - hits > w->n_trace - size ||
		ky_stats_fisher(hits, size, n_affected - hits, w->n_trace - size) >= 1e-6)
		return;
	*best = f;
}

static void find_first(struct work *w)
{
	struct first best = {0};
	char text[128], number[32];

	for (enum scope scope = OF_TRACE; scope < N_SCOPES; scope++) {
		size_t n_groups;

		/* The process says more than its only thread. */
		if (scope == OF_THREAD && ky_explain_has_single_threads(w->x))
			continue;
		count_first(w, scope, 1, &n_groups);
		if (scope != OF_TRACE && n_groups < 2)
			continue;
		for (size_t i = 0; i < w->f->affected.n; i++)
			try_first(w, scope, (size_t)ordinal_in(w->f->affected.v[i], scope) + 1,
				&best);
	}
	if (!best.hits)
		return;
	snprintf(number, sizeof(number), " %zu", best.n);
	snprintf(text, sizeof(text), "the first%s of %s (%zu of these %zu)",
		best.n > 1 ? number : "", scope_names[best.scope], best.hits, best.size);
	add_time(w, best.density, 0, text);
}

/* --- each n-th --- */

#define MAX_STEP     1000  /* all steps up to this one are tried */
#define MAX_MULTIPLE 65536 /* and these of the best of them */
#define MAX_FACTOR   64

struct place {
	uint32_t group, ordinal;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

/* The places of a group with the most frequent remainder: how many. counts: room for step. */
static size_t count_remainder(const struct place *v, size_t n, uint32_t step, uint32_t *counts)
{
	size_t most = 0;

	memset(counts, 0, step * sizeof(*counts));
	for (size_t i = 0; i < n; i++) {
		uint32_t k = ++counts[v[i].ordinal % step];

		most = KY_MAX(most, (size_t)k);
	}
	return most;
}

/* In all groups; of each group one place decides the remainder, and proves nothing. */
static size_t count_multiples(
	const struct place *v, size_t n, uint32_t step, uint32_t *counts, size_t *ret_tried)
{
	size_t hits = 0;

	*ret_tried = 0;
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i; j < n && v[j].group == v[i].group;)
			j++;
		hits += count_remainder(v + i, j - i, step, counts) - 1;
		*ret_tried += j - i - 1;
	}
	return hits;
}

#define MIN_HITS .6 /* part of those that may be hits */

struct step {
	uint32_t step; /* 0: none */
	double part;   /* the greatest part of the places that a tried step had */
};

/* Takes the step if its multiples are as many of the places as those of the best, or nearly. */
static bool try_step(
	struct step *best, const struct place *v, size_t n, uint32_t step, uint32_t *counts)
{
	size_t tried, hits = count_multiples(v, n, step, counts, &tried);
	double part = (double)hits / (double)KY_MAX(tried, (size_t)1);
	double p = hits < 5 || part < MIN_HITS ? 1
					       : ky_stats_binomial(tried, hits, 1 / (double)step);

	/* The remainder, the step and the groups were chosen. */
	if (p * step * MAX_STEP >= 1e-6 || part < .75 * best->part)
		return false;
	best->step = step;
	best->part = KY_MAX(part, best->part);
	return true;
}

/*
 * The largest step whose multiples nearly all affected ones are, as far as any step can say. A
 * larger step has fewer places than there have to be hits. If it is larger than those that are all
 * tried, one of its divisors is found first.
 */
static struct step find_step_of(const struct place *v, size_t n, double n_trace, uint32_t *counts)
{
	struct step best = {0};
	uint32_t step, k = 2;
	double limit;
	size_t tried;

	count_multiples(v, n, 1, counts, &tried);
	limit = n_trace / (MIN_HITS * (double)KY_MAX(tried, (size_t)1));
	for (step = 3; step <= MAX_STEP && step <= limit; step++)
		try_step(&best, v, n, step, counts);
	while (best.step && k <= MAX_FACTOR) {
		step = best.step * k;
		if (step > MAX_MULTIPLE || step > limit)
			break;
		k = try_step(&best, v, n, step, counts) ? 2 : k + 1;
	}
	return best;
}

/* Sorts the places of the affected ones. */
static void test_places(struct work *w, struct place *v, size_t n, const char *of)
{
	uint32_t *counts = new_array(w, MAX_MULTIPLE, sizeof(*counts));
	char text[64 + KY_TEXTS_LENGTH], ordinal[32];
	struct step best = {0};

	if (counts && n >= 6) {
		qsort(v, n, sizeof(*v), compare_places);
		best = find_step_of(v, n, (double)w->n_trace / w->weight, counts);
	}
	free(counts);
	/* So many of those that the step names must be affected. */
	if (!best.step || 4 * of_trace(w, n) * best.step < w->n_trace)
		return;
	snprintf(text, sizeof(text), "each %s %s", put_ordinal(ordinal, sizeof(ordinal), best.step),
		of);
	add_time(w, best.part, 0, text);
}

static void find_step(struct work *w, enum scope scope)
{
	static const char *const names[] = {"of the trace", "of the thread", "of the process"};
	size_t n = w->f->affected.n;
	struct place *v = new_array(w, n, sizeof(*v));

	for (size_t i = 0; v && i < n; i++)
		v[i] = (struct place){group_in(w->x, w->f->affected.v[i], scope),
			ordinal_in(w->f->affected.v[i], scope)};
	if (v)
		test_places(w, v, n, names[scope]);
	free(v);
}

/* Of the instances with the same value of a field, in the same process. */
static void find_step_of_value(struct work *w, uint32_t key)
{
	struct place *v = new_array(w, w->f->affected.n, sizeof(*v));
	char of[32 + KY_TEXTS_LENGTH];
	size_t n = 0;

	for (size_t i = 0; v && i < w->f->affected.n; i++) {
		const struct ky_instance *o = w->f->affected.v[i];
		const struct ky_sum *count = ky_instance_sum(o, KY_NO_KEY, key);
		const struct ky_fact *fact = count ? ky_instance_fact(o, key) : NULL;
		uint64_t group[] = {
			fact ? (uint64_t)fact->number : 0, group_in(w->x, o, OF_PROCESS)};

		if (fact)
			v[n++] = (struct place){
				ky_hash(group, sizeof(group)), (uint32_t)count->all};
	}
	snprintf(of, sizeof(of), "with the same %s",
		ky_texts_get(&w->x->names, w->x->keys.v[key].field));
	if (v)
		test_places(w, v, n, of);
	free(v);
}

/* --- periods --- */

/* So many distances, so near to the period: then the period is a reason, not only evidence. */
#define MIN_PERIODS 8
#define NEAR_PERIOD .06

static int compare_ends(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

#define MIN_GROUPS 6 /* of affected instances */
#define APART	   4 /* the shortest time between groups, by the longest one within a group */

/*
 * The time within which affected instances belong together: something that comes now and then slows
 * all that meet it. The times from each one to the next are then short or long, but not between;
 * otherwise 0. length: of an instance, on average; shorter times are all alike.
 */
static double find_near(struct work *w, struct ky_instance *const *v, size_t n, double length)
{
	double *gaps = new_array(w, n, sizeof(*gaps)), near = 0, ratio = APART;
	int64_t last = 0;

	for (size_t i = 0; gaps && i < n; i++) {
		if (i)
			gaps[i - 1] = KY_MAX((double)(v[i]->begin_ns - last), length);
		last = KY_MAX(last, v[i]->end_ns);
	}
	if (gaps && n)
		ky_stats_sort(gaps, n - 1);
	for (size_t i = 1; gaps && i + MIN_GROUPS <= n; i++) {
		if (gaps[i] <= ratio * gaps[i - 1])
			continue;
		ratio = gaps[i] / gaps[i - 1];
		near = gaps[i - 1];
	}
	free(gaps);
	return near;
}

/* Distances between the ends of affected instances; those that follow so soon are one. */
static size_t find_distances(struct ky_instance *const *v, size_t n, double near, double *ret)
{
	int64_t first = 0, last = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		bool follows = i && (double)(v[i]->begin_ns - last) <= near;

		last = KY_MAX(last, v[i]->end_ns);
		if (follows)
			continue;
		if (i)
			ret[k++] = (double)(v[i]->end_ns - first);
		first = v[i]->end_ns;
	}
	return k;
}

/* Adds a period if the distances are multiples of one. Sorts them. */
static bool add_period(struct work *w, double *v, size_t n, double length)
{
	double median;
	size_t k = 0, n_near = 0;
	char text[64], each[32];
	bool is_reason;

	ky_stats_sort(v, n);
	median = ky_stats_quantile(v, n, .5);
	for (size_t i = 0; i < n && median > 1.5 * length; i++) {
		double ratio = v[i] / median, whole = round(ratio);

		if (whole >= 1 && whole <= 4 && fabs(ratio - whole) < .12) {
			n_near += fabs(ratio - whole) < NEAR_PERIOD;
			v[k++] = v[i] / whole;
		}
	}
	if (n < 5 || (double)k < .8 * (double)n)
		return false;
	is_reason = n_near >= MIN_PERIODS && 10 * n_near >= 9 * n &&
		    w->f->mean_ns[0] > 2 * w->f->mean_ns[1];
	ky_stats_sort(v, k);
	snprintf(text, sizeof(text), "every %s",
		ky_words_duration(each, sizeof(each), ky_stats_quantile(v, k, .5)));
	add_time(w, is_reason ? .6 : .5, is_reason ? 3 : 4, text);
	return true;
}

static void find_period(struct work *w)
{
	size_t n = w->f->affected.n;
	double *distances = new_array(w, n, sizeof(*distances)), length = 0;
	struct ky_instance **v = new_array(w, n, sizeof(*v));

	if (distances && v) {
		memcpy(v, w->f->affected.v, n * sizeof(*v));
		qsort(v, n, sizeof(*v), compare_ends);
		for (size_t i = 0; i < n; i++)
			length += v[i]->ns / (double)n;
		if (!add_period(w, distances, find_distances(v, n, length / 4, distances), length))
			add_period(w, distances,
				find_distances(v, n, find_near(w, v, n, length), distances),
				length);
	}
	free(distances);
	free(v);
}

/* --- one stretch of the trace --- */

#define NEAR 10 /* instances between two of a stretch */

/* Affected ones in order of their begins, from one to another, and how many began meanwhile. */
struct stretch {
	struct ky_instance **v;
	size_t n, from, to, size;
};

static size_t size_of(const struct stretch *s, size_t from, size_t to)
{
	return (size_t)s->v[to]->ordinal - s->v[from]->ordinal + 1;
}

/* The shortest one with nine tenths of them, and those that follow, or come before, at once. */
static void find_shortest(const struct work *w, struct stretch *s)
{
	size_t k = (s->n * 9 + 9) / 10, near = (size_t)(NEAR * w->weight);

	s->to = k - 1;
	for (size_t i = 1; i + k <= s->n; i++) {
		if (size_of(s, i, i + k - 1) < size_of(s, s->from, s->to)) {
			s->from = i;
			s->to = i + k - 1;
		}
	}
	while (s->from && size_of(s, s->from - 1, s->from) <= near)
		s->from--;
	while (s->to + 1 < s->n && size_of(s, s->to, s->to + 1) <= near)
		s->to++;
	s->size = size_of(s, s->from, s->to);
}

/* A rare event from the last one that is not slow to the first one of the stretch; or NULL. */
static const char *find_event_before(const struct work *w, const struct stretch *s)
{
	const struct ky_instance *first = s->v[s->from];
	const struct ky_rare *found = NULL;
	int64_t from_ns = INT64_MAX;

	for (size_t i = 0; i < w->n_all && w->all[i]->begin_ns < first->begin_ns; i++) {
		if (w->all[i]->ns < w->from_ns)
			from_ns = w->all[i]->begin_ns;
	}
	for (size_t i = 0; i < w->x->rare.n; i++) {
		const struct ky_rare *r = &w->x->rare.v[i];

		if (r->ns >= from_ns && r->ns <= first->end_ns && (!found || r->ns > found->ns))
			found = r;
	}
	return found ? ky_texts_get(&w->x->names, found->name) : NULL;
}

static void add_stretch(struct work *w, const struct stretch *s, size_t n, bool is_reason)
{
	const struct ky_instance *first = s->v[s->from], *last = s->v[s->to];
	const char *event = find_event_before(w, s);
	char text[192 + KY_TEXTS_LENGTH], from[48], to[48];
	bool is_to_end = (double)(w->n_trace - last->ordinal) <= NEAR * w->weight;

	ky_times_clock(from, sizeof(from), first->begin_ns);
	ky_times_clock(to, sizeof(to), last->end_ns);
	snprintf(text, sizeof(text), "from %.12s %s%.12s%s%s (%zu of the %zu then)", from,
		is_to_end ? "on" : "to ", is_to_end ? "" : to, event ? ", after " : "",
		event ? event : "", n, s->size);
	add_time(w, KY_MIN(1, (double)n / (double)s->size), is_reason ? 3 : 4, text);
}

/* The shortest stretch with nine tenths of the affected ones, if half of all in it are affected. */
static void find_stretch(struct work *w)
{
	struct stretch s = {.n = w->f->affected.n};
	size_t n, others;
	bool is_reason;

	s.v = new_array(w, s.n, sizeof(*s.v));
	if (!s.v || s.n < 10) {
		free(s.v);
		return;
	}
	memcpy(s.v, w->f->affected.v, s.n * sizeof(*s.v));
	qsort(s.v, s.n, sizeof(*s.v), ky_instance_by_begin);
	find_shortest(w, &s);
	n = KY_MIN(of_trace(w, s.to - s.from + 1), s.size);
	others = KY_MIN(of_trace(w, s.n - (s.to - s.from + 1)), w->n_trace - s.size);
	/* One stall of the machine hits all that are open at that time. */
	is_reason = n >= MIN_STRETCH && (double)n >= .9 * (double)s.size &&
		    w->f->mean_ns[0] > 2 * w->f->mean_ns[1] &&
		    (double)(s.v[s.to]->end_ns - s.v[s.from]->begin_ns) >
			    5 * w->f->affected.v[0]->ns;
	/* Since a certain time, most may be slow. */
	if (2 * n >= s.size &&
		(is_reason ? 3 * s.size <= 2 * w->n_trace : 2 * s.size <= w->n_trace) &&
		ky_stats_fisher(n, s.size, others, w->n_trace - s.size) * (double)s.n < 1e-6)
		add_stretch(w, &s, n, is_reason);
	free(s.v);
}

/* --- ever slower --- */

static void find_trend(struct work *w)
{
	double x[N_TREND] = {0}, y[N_TREND], late = 0, early = 0, affected = 0, rest = 0;
	double *ns = new_array(w, w->n_all, sizeof(*ns)), explained;
	struct ky_stats_line line;
	char text[96], each[32];

	if (!ns || w->n_all < 10 * N_TREND) {
		free(ns);
		return;
	}
	for (size_t b = 0; b < N_TREND; b++) {
		size_t from = b * w->n_all / N_TREND, to = (b + 1) * w->n_all / N_TREND;

		for (size_t i = from; i < to; i++) {
			ns[i - from] = ky_finding_ns(w->f, w->all[i]);
			x[b] += (double)(w->all[i]->begin_ns - w->all[0]->begin_ns) /
				(double)(to - from);
		}
		ky_stats_sort(ns, to - from);
		y[b] = ky_stats_quantile(ns, to - from, .5);
	}
	free(ns);
	line = ky_stats_line(x, y, N_TREND);
	for (size_t i = 0; i < w->f->affected.n; i++) {
		late += (double)(w->f->affected.v[i]->begin_ns - w->all[0]->begin_ns) /
			(double)w->f->affected.n;
		affected += ky_finding_ns(w->f, w->f->affected.v[i]) / (double)w->f->affected.n;
	}
	for (size_t i = 0; i < w->n_all; i++) {
		early += (double)(w->all[i]->begin_ns - w->all[0]->begin_ns) / (double)w->n_all;
		rest += ky_finding_ns(w->f, w->all[i]) / (double)w->n_all;
	}
	explained = line.slope * (late - early) / KY_MAX(1, affected - rest);
	if (line.r2 <= .85 || line.slope <= 0 || explained < .4)
		return;
	snprintf(text, sizeof(text), "the later, the longer: %s more after each second",
		ky_words_duration(each, sizeof(each), line.slope * NS_PER_S));
	add_time(w, KY_MIN(1, explained), 1, text);
}

int ky_times_find(struct ky_times *ret, const struct ky_difference *d, const struct ky_finding *f,
	struct ky_instance *const *all, size_t n_all)
{
	const struct ky_explain *x = d->x;
	struct work w = {.times = ret,
		.x = x,
		.f = f,
		.all = all,
		.n_all = n_all,
		.from_ns = d->group->from_ns,
		.weight = KY_MAX(1, d->group->slow_weight)};

	*ret = (struct ky_times){0};
	for (size_t i = 0; i < x->threads.n; i++) {
		if (x->threads.v[i]->is_second == f->affected.v[0]->is_second)
			w.n_trace += x->threads.v[i]->n_instances;
	}
	find_first(&w);
	for (enum scope s = OF_TRACE; s < N_SCOPES && !ret->n; s++)
		find_step(&w, s);
	for (uint32_t key = 0; key < x->keys.n && !ret->n; key++)
		find_step_of_value(&w, key);
	if (!ret->n) {
		find_trend(&w);
		find_stretch(&w);
		find_period(&w);
	}
	for (size_t i = 0; i < ret->n && w.error; i++)
		free(ret->v[i].text);
	return w.error;
}
