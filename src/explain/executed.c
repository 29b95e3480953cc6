/* SPDX-License-Identifier: MIT */
/* CPU samples of a finding: the functions that its threads execute. */
#include "explain/executed.h"

#include "explain/stats.h"

#define MOST	     0.6 /* of the samples, to be named */
#define MIN_SAMPLES  5
#define MIN_EXPECTED 10 /* samples, if the threads had run */
#define HARDLY	     0.1
#define CONTRAST     2 /* what is much of any instance is more of a longer one */

struct function {
	uint32_t name;
	size_t n[2];   /* samples of slow and of shorter instances that have it */
	size_t places; /* sum of its places in the slow ones */
};

struct executed {
	const struct ky_explain *x;
	const struct ky_finding *f;
	bool is_remarkable;
	KY_VEC(struct function) functions;
	size_t n[2]; /* samples */
};

static bool is_below(const struct executed *d, uint32_t c)
{
	for (; c; c = ky_component_of(d->x, c)->parent) {
		for (size_t i = 0; i < d->f->components.n; i++) {
			if (d->f->components.v[i] == c)
				return true;
		}
	}
	return false;
}

static struct function *get_function(struct executed *d, uint32_t name)
{
	for (size_t i = 0; i < d->functions.n; i++) {
		if (d->functions.v[i].name == name)
			return &d->functions.v[i];
	}
	return ky_vec_add(&d->functions, (struct function){.name = name}) < 0
		       ? NULL
		       : &d->functions.v[d->functions.n - 1];
}

/* Adds the functions of a stack, a recursive one once. */
static int add_sample(struct executed *d, const struct ky_sample *s, bool is_short)
{
	d->n[is_short] += s->n;
	for (size_t i = 0; i < KY_SAMPLE_DEPTH; i++) {
		struct function *f;
		size_t k = 0;

		while (s->functions[k] != s->functions[i])
			k++;
		if (!s->functions[i] || k < i)
			continue;
		f = get_function(d, s->functions[i]);
		if (!f)
			return -ENOMEM;
		f->n[is_short] += s->n;
		f->places += is_short ? 0 : s->n * i;
	}
	return 0;
}

static int add_samples(struct executed *d, struct ky_instance *const *v, size_t n, bool is_short)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < v[i]->samples.n; k++) {
			const struct ky_sample *s = &v[i]->samples.v[k];
			int r = is_below(d, s->component) ? add_sample(d, s, is_short) : 0;

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* The innermost function that most samples have; NULL: there is none. */
static const struct function *find_function(const struct executed *d)
{
	const struct function *best = NULL;

	for (size_t i = 0; i < d->functions.n && d->n[0] >= MIN_SAMPLES; i++) {
		const struct function *f = &d->functions.v[i];

		if ((double)f->n[0] >= MOST * (double)d->n[0] &&
			(!best || f->places * best->n[0] < best->places * f->n[0]))
			best = f;
	}
	return best;
}

/* Shorter instances execute something else: what slow ones execute is no matter of chance. */
static bool is_unlike(const struct executed *d, const struct function *f, size_t n_tests)
{
	size_t slow = f->n[0], shorter = f->n[1];

	return d->is_remarkable &&
	       (double)slow * (double)d->n[1] > CONTRAST * (double)shorter * (double)d->n[0] &&
	       ky_stats_fisher(slow, d->n[0], shorter, d->n[1]) * (double)n_tests < KY_ALPHA;
}

static void put_samples(
	struct ky_buf *b, const struct executed *d, const struct function *f, double ns)
{
	double expected = d->x->sample_ns ? ns / (double)d->x->sample_ns : 0;

	if (expected > MIN_EXPECTED && (double)d->n[0] < HARDLY * expected) {
		ky_buf_printf(b, "; it hardly runs meanwhile: %zu CPU sample%s instead of %.0f",
			d->n[0], d->n[0] == 1 ? "" : "s", expected);
		return;
	}
	if (!f)
		return;
	ky_buf_printf(b, "; %.0f %% of its %zu CPU samples are in %s",
		100 * (double)f->n[0] / (double)d->n[0], d->n[0],
		ky_texts_get(&d->x->names, f->name));
	if (d->f->is_executed)
		ky_buf_printf(b, " (of shorter ones, %zu of %zu)", f->n[1], d->n[1]);
}

int ky_executed_find(const struct ky_difference *d, struct ky_finding *f)
{
	struct executed e = {.x = d->x, .f = f, .is_remarkable = d->group->is_remarkable};
	const struct function *function;
	struct ky_buf text = {0};
	double ns = 0;
	int r;

	if (f->kind != KY_FINDING_LONGER || ky_finding_is_wait(d->x, f) || !d->x->sample_ns)
		return 0;
	r = add_samples(&e, f->affected.v, f->affected.n, false);
	for (size_t i = 0; i < d->n_all && !r; i++) {
		if (d->all[i]->ns < d->group->from_ns)
			r = add_samples(&e, &d->all[i], 1, true);
	}
	for (size_t i = 0; i < f->affected.n; i++)
		ns += ky_finding_ns(f, f->affected.v[i]);
	function = find_function(&e);
	f->is_executed = function && is_unlike(&e, function, e.functions.n);
	put_samples(&text, &e, function, ns);
	if (!r && text.len)
		f->executed = text.error ? NULL : strdup(text.data);
	if (!r && text.len && !f->executed)
		r = -ENOMEM;
	ky_buf_deinit(&text);
	ky_vec_deinit(&e.functions);
	return r;
}
