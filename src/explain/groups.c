/* SPDX-License-Identifier: MIT */
#include "explain/groups.h"

#include <math.h>

#include "base/bisect.h"
#include "explain/stats.h"

int ky_slowest_parse(struct ky_slowest *ret, const char *text)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	bool longer = *text == '>';
	char *end;
	double v = strtod(text + longer, &end);

	*ret = (struct ky_slowest){.value = v, .text = text};
	if (end == text + longer || !(v > 0) || !isfinite(v))
		return -EINVAL;
	for (size_t i = 0; i < KY_ARRAY_SIZE(units); i++) {
		if (!strcmp(end, units[i].name)) {
			*ret = (struct ky_slowest){KY_SLOWEST_LONGER, v * units[i].ns, text};
			return 0;
		}
	}
	if (longer)
		return -EINVAL;
	ret->kind = *end == '%' ? KY_SLOWEST_PERCENT : KY_SLOWEST_COUNT;
	if (ret->kind == KY_SLOWEST_PERCENT)
		return end[1] || v >= 100 ? -EINVAL : 0;
	return *end || v != floor(v) ? -EINVAL : 0;
}

static int compare_random(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	if (x->random != y->random)
		return x->random < y->random ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Moves the first k of the order to the front, without sorting them. */
static void select_first(struct ky_instance **v, size_t n, size_t k)
{
	size_t from = 0, to = n;

	while (from < k && k < to) {
		const struct ky_instance *pivot = v[from + (to - from) / 2];
		size_t i = from, j = to;

		while (i < j) {
			struct ky_instance *t;

			while (compare_random(&v[i], &pivot) < 0)
				i++;
			while (compare_random(&v[j - 1], &pivot) > 0)
				j--;
			if (i >= j)
				break;
			t = v[i];
			v[i++] = v[--j];
			v[j] = t;
		}
		if (k <= j)
			to = j;
		else
			from = i;
	}
}

int ky_groups_sample(struct ky_instance ***ret, size_t *ret_n, struct ky_instance *const *v,
	size_t n, size_t max)
{
	struct ky_instance **copy = calloc(n + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (n)
		memcpy(copy, v, n * sizeof(*copy));
	select_first(copy, n, max);
	*ret_n = KY_MIN(n, max);
	qsort(copy, *ret_n, sizeof(*copy), compare_random);
	*ret = copy;
	return 0;
}

/* Instances in order of their lengths, with the logarithms of these. */
struct ordered {
	struct ky_instance **v; /* owned */
	double *logs;		/* owned */
	size_t n;		/* those that are looked at: the others are longer */
	size_t n_all;
	size_t mode;  /* index at which the slow mode begins; 0: there is none */
	size_t most;  /* the same, if most instances are in it */
	double scale; /* all instances for each that is kept */
};

#define MIN_FAST 3 /* a third of the instances must not be slow */

static void free_ordered(struct ordered *o)
{
	free(o->v);
	free(o->logs);
}

/* Takes and frees v; NULL: there is no memory. */
static int order(struct ordered *o, struct ky_instance **v, size_t n)
{
	*o = (struct ordered){
		.v = v, .logs = calloc(n + 1, sizeof(double)), .n = n, .n_all = n, .scale = 1};
	if (!o->v || !o->logs) {
		free_ordered(o);
		return -ENOMEM;
	}
	qsort(o->v, n, sizeof(struct ky_instance *), ky_instance_by_length);
	for (size_t i = 0; i < n; i++)
		o->logs[i] = log(KY_MAX(o->v[i]->ns, 1));
	o->mode = ky_stats_split(o->logs, n);
	if (!o->mode)
		o->most = ky_stats_split_from(o->logs, n, n / MIN_FAST);
	return 0;
}

static int order_all(struct ordered *o, struct ky_instances *v)
{
	struct ky_instance **all = calloc(v->all.n + 1, sizeof(*all));

	for (size_t i = 0; all && i < v->all.n; i++)
		all[i] = &v->all.v[i];
	return order(o, all, v->all.n);
}

static bool is_remarkable(const struct ordered *o, size_t cut, size_t end)
{
	double part = (double)(o->n - cut) / (double)o->n;

	size_t from = cut > o->most ? o->most : 0;
	size_t to = cut == o->most && cut ? cut : o->mode ? o->mode : o->n;

	return ky_stats_mean(o->logs + cut, end - cut) >
	       ky_stats_tail(o->logs + from, to - from, part);
}

static double mean_from(const struct ordered *o, size_t from)
{
	double sum = 0;

	for (size_t i = from; i < o->n_all; i++)
		sum += o->v[i]->ns;
	return from < o->n_all ? sum / (double)(o->n_all - from) : 0;
}

/* The slow ones are those from index cut to end. */
static int add_group(struct ky_groups *g, const struct ordered *o, size_t cut, size_t end)
{
	struct ky_group *group = &g->v[g->n];
	/* Of the slow mode that most instances are in, the longest are compared with the others. */
	size_t first = cut > o->most ? o->most : 0;
	size_t body = KY_MIN(o->mode ? o->mode : o->n, cut), from = first + (body - first) / 4;
	size_t to = KY_MAX(from + 1, first + (body - first) * 3 / 4);
	int r;

	*group = (struct ky_group){.n_all_slow = round((double)(end - cut) * o->scale),
		.from_ns = o->v[cut]->ns,
		.to_ns = end < o->n_all ? o->v[end - 1]->ns : 0,
		.n_longer = (size_t)round((double)(o->n_all - end) * o->scale),
		.longer_ns = mean_from(o, end),
		.is_remarkable = is_remarkable(o, cut, end)};
	r = ky_groups_sample(&group->slow, &group->n_slow, o->v + cut, end - cut, KY_MAX_GROUP);
	if (!r)
		r = ky_groups_sample(&group->typical, &group->n_typical, o->v + from,
			KY_MIN(to, body) - from, KY_MAX_GROUP);
	g->n++;
	return r;
}

static int add_mode(struct ky_groups *g, const struct ordered *o, size_t cut, size_t end)
{
	int r = add_group(g, o, cut, end);

	g->v[g->n - 1].is_mode = true;
	snprintf(g->v[g->n - 1].how, sizeof(g->v[0].how), "a group of their own");
	return r;
}

/* The slow mode, the slow mode of that, and its shorter half. */
static int add_modes(struct ky_groups *g, const struct ordered *o, size_t cuts[2])
{
	size_t n = o->n - o->mode, upper;
	int r;

	if (!o->mode)
		return 0;
	cuts[0] = o->mode;
	r = add_mode(g, o, o->mode, o->n);
	upper = n < 40 ? 0 : ky_stats_split(o->logs + o->mode, n);
	if (!r && upper) {
		cuts[1] = o->mode + upper;
		r = add_mode(g, o, cuts[1], o->n);
	}
	if (!r && n >= 20)
		r = add_mode(g, o, o->mode, upper ? o->mode + upper : o->mode + n / 2);
	return r;
}

/* Whether the cut differs from another by less than a fifth of what that one takes. */
static bool is_near(const struct ordered *o, size_t cut, size_t other)
{
	double distance = fabs((double)cut - (double)other);

	return other && distance <= .2 * (double)(o->n - other);
}

#define MIN_FEW	   4	/* instances, at least, that are far longer than all others */
#define FEW_FACTOR 2	/* so much longer, at least */
#define FEW_OF	   .005 /* of all, at most: more of them are a mode */

/*
 * A few instances that are far longer than all others. On a busy machine, the tail of those that
 * lost their processor hides them from the slow mode.
 */
static int add_few(struct ky_groups *g, const struct ordered *o, size_t cuts[2])
{
	size_t least = o->n - (size_t)(FEW_OF * (double)o->n), cut = 0;
	double best = log(FEW_FACTOR);

	for (size_t i = KY_MAX(least, (size_t)1); i + MIN_FEW <= o->n; i++)
		if (o->logs[i] - o->logs[i - 1] >= best) {
			best = o->logs[i] - o->logs[i - 1];
			cut = i;
		}
	if (!cut || is_near(o, cut, cuts[0]) || is_near(o, cut, cuts[1]))
		return 0;
	return add_mode(g, o, cut, o->n);
}

static int add_parts(struct ky_groups *g, const struct ordered *o, const size_t cuts[2])
{
	static const double parts[] = {.01, .05};
	size_t last = 0;
	int r = 0;

	for (size_t i = 0; i < KY_ARRAY_SIZE(parts) && !r; i++) {
		size_t n = KY_MAX(KY_MIN((size_t)10, o->n / 10), (size_t)(parts[i] * (double)o->n));
		size_t cut = o->n - n;

		if (is_near(o, cut, cuts[0]) || is_near(o, cut, cuts[1]) || is_near(o, cut, last))
			continue;
		last = cut;
		r = add_group(g, o, cut, o->n);
		snprintf(g->v[g->n - 1].how, sizeof(g->v[0].how), "the slowest %.2g %%",
			100 * (double)n / (double)o->n);
	}
	return r;
}

/*
 * Noise of the machine may be longer than anything of the program. If it is the slow mode, the
 * program's own causes are hidden below.
 */
static int add_below(struct ky_groups *g, const struct ordered *o)
{
	struct ordered below = *o;
	size_t cuts[2] = {0};
	int r = 0;

	below.n = o->mode;
	if (below.n < KY_MIN_INSTANCES)
		return 0;
	below.mode = ky_stats_split(o->logs, below.n);
	if (below.mode) {
		cuts[0] = below.mode;
		r = add_mode(g, &below, below.mode, below.n);
	}
	return r ? r : add_parts(g, &below, cuts);
}

static int add_all(struct ky_groups *g, const struct ordered *o)
{
	size_t cuts[2] = {0};
	int r = add_modes(g, o, cuts);

	if (!r)
		r = add_few(g, o, cuts);
	if (!r)
		r = add_parts(g, o, cuts);
	if (!r)
		r = add_below(g, o);
	/* The tail may be noise, too, without being a mode. */
	if (!r && o->n >= 200) {
		r = add_group(g, o, o->n * 8 / 10, o->n * 9 / 10);
		snprintf(g->v[g->n - 1].how, sizeof(g->v[0].how),
			"the slower tenth before the slowest");
	}
	if (!r && o->most) {
		r = add_mode(g, o, o->most, o->n);
		g->v[g->n - 1].is_most = true;
	}
	return r;
}

static size_t asked_cut(const struct ordered *o, const struct ky_slowest *s)
{
	size_t cut = 0, n;

	if (s->kind == KY_SLOWEST_LONGER) {
		while (cut < o->n && o->v[cut]->ns <= s->value)
			cut++;
		return cut;
	}
	n = s->kind == KY_SLOWEST_PERCENT ? (size_t)lround(s->value * (double)o->n / 100)
					  : (size_t)KY_MIN(s->value, (double)o->n);
	return o->n - KY_MAX(n, (size_t)1);
}

/*
 * Of more instances than are kept, the sample has too few of a small part: then the slow ones are
 * the longest of all.
 */
static int take_longest(struct ky_group *group, struct ky_instances *v, const struct ky_slowest *s)
{
	size_t n = 0;
	struct ky_instance **longest;
	double count = s->kind == KY_SLOWEST_PERCENT ? s->value * (double)v->n / 100 : s->value;

	if (s->kind == KY_SLOWEST_LONGER) {
		while (n < v->longest.n && v->longest.v[n].ns > s->value)
			n++;
	} else {
		n = count <= (double)v->longest.n ? (size_t)KY_MAX(count, 1) : v->longest.n;
	}
	/* All of those that are kept: the sample knows more of them. */
	if (!n || n == v->longest.n)
		return 0;
	longest = calloc(n, sizeof(*longest));
	if (!longest)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		longest[i] = &v->longest.v[i];
	free(group->slow);
	group->slow = longest;
	group->n_slow = n;
	group->n_all_slow = (double)n;
	group->from_ns = longest[n - 1]->ns;
	return 0;
}

static int add_asked(struct ky_groups *g, struct ky_instances *v, const struct ordered *o,
	const struct ky_slowest *s)
{
	/* Some must remain to be typical. */
	size_t cut = KY_MIN(KY_MAX(asked_cut(o, s), (size_t)4), o->n - 1);
	int r = add_group(g, o, cut, o->n);

	snprintf(g->v[0].how, sizeof(g->v[0].how),
		s->kind == KY_SLOWEST_LONGER ? "longer than %s" : "the slowest %s",
		s->text + (*s->text == '>'));
	return r || !v->longest.n ? r : take_longest(&g->v[0], v, s);
}

static void set_weights(struct ky_groups *g)
{
	for (size_t i = 0; i < g->n; i++) {
		double chosen = KY_MAX(1, (double)g->v[i].n_slow);

		g->v[i].slow_weight = KY_MAX(1, g->v[i].n_all_slow / chosen);
	}
}

double ky_group_weight(const struct ky_group *group, const struct ky_instance *i)
{
	return i->ns >= group->from_ns ? group->slow_weight : i->weight;
}

int ky_groups_find(struct ky_groups *g, struct ky_instances *v, const struct ky_slowest *slowest)
{
	struct ordered o;
	int r = order_all(&o, v);

	if (r < 0)
		return r;
	o.scale = v->all.n ? (double)v->n / (double)v->all.n : 1;
	if (slowest->kind != KY_SLOWEST_AUTO)
		o.most = 0;
	r = slowest->kind == KY_SLOWEST_AUTO ? add_all(g, &o) : add_asked(g, v, &o, slowest);
	set_weights(g);
	free_ordered(&o);
	return r;
}

int ky_groups_find_net(struct ky_groups *g, struct ky_instance *const *v, size_t n, double n_all)
{
	struct ky_instance **sample = NULL;
	struct ordered o;
	size_t n_sample = 0;
	int r = ky_groups_sample(&sample, &n_sample, v, n, KY_MAX_SAMPLE);

	if (!r)
		r = order(&o, sample, n_sample);
	if (r < 0)
		return r;
	o.scale = n_sample ? n_all / (double)n_sample : 1;
	r = add_all(g, &o);
	set_weights(g);
	free_ordered(&o);
	return r;
}

static int take_middle(struct ky_instance ***ret, size_t *ret_n, const struct ordered *o)
{
	return ky_groups_sample(ret, ret_n, o->v + o->n / 4,
		KY_MAX(o->n * 3 / 4 - o->n / 4, (size_t)1), KY_MAX_GROUP);
}

/* Without its longest: if a quarter of all is slow, some of these are in the middle half. */
static double middle_mean(const struct ordered *o)
{
	size_t from = o->n / 4, to = KY_MAX(o->n * 7 / 10, from + 1);
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += o->v[i]->ns;
	return sum / (double)(to - from);
}

#define MUCH_LONGER 1.5	 /* than the slowest of another run: these differ more than others */
#define MIN_TAIL    10	 /* instances */
#define TAIL_P	    1e-4 /* for each percent that is tried */

/* The median of the slowest percent. */
static double tail_median(const struct ordered *o, double percent)
{
	return o->v[o->n - 1 - (size_t)(percent / 200 * (double)o->n)]->ns;
}

static size_t count_longer(const struct ordered *o, double ns)
{
	size_t first;

	ky_bisect(first, o->n, k, o->v[k]->ns <= ns);
	return o->n - first;
}

/* Whether the slowest take much longer than those of the other trace, and more of them do. */
static bool is_tail_longer(const struct ordered *o, const struct ordered *typical, double percent)
{
	double ns = tail_median(o, percent), other = tail_median(typical, percent);
	double between = sqrt(ns * other);

	return ns > MUCH_LONGER * other &&
	       ky_stats_fisher(count_longer(o, between), o->n, count_longer(typical, between),
		       typical->n) < TAIL_P;
}

/* The percent of the slowest that add most time to that of the other trace; 0: none do. */
static double find_tail(const struct ordered *o, const struct ordered *typical)
{
	static const double percents[] = {25, 10, 5, 2, 1};
	double best = 0, most = 0;

	for (size_t k = 0; k < KY_ARRAY_SIZE(percents); k++) {
		double more = percents[k] *
			      (tail_median(o, percents[k]) - tail_median(typical, percents[k]));

		if (percents[k] / 100 * (double)KY_MIN(o->n, typical->n) < MIN_TAIL)
			break;
		if (more <= most || !is_tail_longer(o, typical, percents[k]))
			continue;
		best = percents[k];
		most = more;
	}
	return best;
}

/* Without --slowest: the middle halves, or the slowest if only these take longer. */
static int add_against(struct ky_groups *g, struct ky_instances *v, const struct ordered *o,
	const struct ordered *typical)
{
	double middle = middle_mean(o), other = middle_mean(typical), percent = 0;
	struct ky_group *group = &g->v[0];
	char text[16];
	int r;

	if (middle < KY_MIN_SLOWER * other)
		percent = find_tail(o, typical);
	if (percent > 0) {
		snprintf(text, sizeof(text), "%.0f %%", percent);
		r = add_asked(g, v, o, &(struct ky_slowest){KY_SLOWEST_PERCENT, percent, text});
		free(group->typical);
		group->typical = NULL;
	} else {
		g->n = 1;
		*group = (struct ky_group){.n_all_slow = (double)v->n / 2};
		r = take_middle(&group->slow, &group->n_slow, o);
		for (size_t i = 0; i < group->n_slow && !r; i++)
			group->from_ns = i ? KY_MIN(group->from_ns, group->slow[i]->ns)
					   : group->slow[i]->ns;
		snprintf(group->how, sizeof(group->how), "the middle half");
	}
	group->percent = percent;
	group->tail_ns[0] = tail_median(o, percent);
	group->tail_ns[1] = tail_median(typical, percent);
	group->middle_ns[0] = middle;
	group->middle_ns[1] = other;
	return r;
}

int ky_groups_against(struct ky_groups *g, struct ky_instances *v, struct ky_instances *typical,
	const struct ky_slowest *slowest)
{
	struct ky_group *group = &g->v[0];
	struct ordered o, other;
	int r = order_all(&other, typical);

	if (r < 0)
		return r;
	if (slowest->kind != KY_SLOWEST_AUTO) {
		r = ky_groups_find(g, v, slowest);
		free(group->typical);
		group->typical = NULL;
	} else {
		r = order_all(&o, v);
		if (!r) {
			o.scale = v->all.n ? (double)v->n / (double)v->all.n : 1;
			r = add_against(g, v, &o, &other);
			free_ordered(&o);
		}
	}
	group->is_remarkable = true;
	group->slow_weight = 1;
	if (!r)
		r = take_middle(&group->typical, &group->n_typical, &other);
	free_ordered(&other);
	return r;
}

void ky_group_deinit(struct ky_group *group)
{
	free(group->slow);
	free(group->typical);
}

void ky_groups_deinit(struct ky_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		ky_group_deinit(&g->v[i]);
}
