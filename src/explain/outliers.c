/* SPDX-License-Identifier: MIT */
#include "explain/outliers.h"

#include "explain/sentence.h"
#include "explain/words.h"

#define MAX_OUTLIERS   3 /* too few to compare */
#define OUTLIER_FACTOR 4 /* times the longest of all others */

static int64_t whole_ns(const struct ky_instance *i)
{
	return i->end_ns - i->begin_ns;
}

/* The longest few, the longest first: v has room for MAX_OUTLIERS + 1. Returns how many. */
static size_t find_longest(const struct ky_instances *all, const struct ky_instance **v)
{
	size_t n = 0;

	for (size_t i = 0; i < all->all.n; i++) {
		const struct ky_instance *o = &all->all.v[i];
		size_t k = KY_MIN(n, (size_t)MAX_OUTLIERS);

		if (n > MAX_OUTLIERS && whole_ns(o) <= whole_ns(v[k]))
			continue;
		if (n <= MAX_OUTLIERS)
			k = n++;
		for (; k && whole_ns(v[k - 1]) < whole_ns(o); k--)
			v[k] = v[k - 1];
		v[k] = o;
	}
	return n;
}

static bool is_below(const struct ky_explain *x, uint32_t c, uint32_t parent)
{
	while (c && c != parent)
		c = ky_component_of(x, c)->parent;
	return c;
}

/* The innermost span in which most of its time passes; 0: it is the instance itself. */
static uint32_t find_span(const struct ky_explain *x, const struct ky_instance *i)
{
	uint32_t found = 0;

	for (size_t k = 0; i->is_closed && k < i->parts.n; k++) {
		const struct ky_part *p = &i->parts.v[k];
		const struct ky_component *o = ky_component_of(x, p->component);

		if (o->kind == KY_PART_SPAN && p->component != KY_ROOT &&
			(double)p->ns >= .6 * i->ns && (!found || is_below(x, p->component, found)))
			found = p->component;
	}
	return found;
}

/* Whether the span is in the text, and not only the event at its end. */
static bool is_named(const char *text, const char *path)
{
	size_t n = strlen(path);

	while ((text = strstr(text, path)) && text[n] == '_')
		text += n;
	return text;
}

void ky_outliers_put(struct ky_buf *b, const struct ky_explanation *e)
{
	const struct ky_instance *v[MAX_OUTLIERS + 1];
	size_t n = find_longest(&e->instances[0], v), k = n > MAX_OUTLIERS ? 1 : n;
	uint32_t span = 0;
	struct ky_buf path = {0};

	/* A sample of all may not have the longest. */
	if (e->instances[0].longest.n)
		return;
	while (k < n && whole_ns(v[k - 1]) < OUTLIER_FACTOR * whole_ns(v[k]))
		k++;
	if (k < n)
		span = find_span(&e->x, v[0]);
	for (size_t i = 1; i < k && span; i++)
		span = find_span(&e->x, v[i]) == span ? span : 0;
	if (!span)
		return;
	ky_sentence_path(&path, &e->x, span, 1);
	if (path.data && !path.error && !is_named(b->data, path.data)) {
		ky_buf_puts(b, "; the longest");
		if (k > 1)
			ky_buf_printf(b, " %zu", k);
		ky_buf_puts(b, k > 1 ? ", of " : ", ");
		ky_words_put_duration(b, (double)whole_ns(v[k - 1]));
		ky_buf_printf(b, "%s in %s", k > 1 ? " and more, pass" : ", passes", path.data);
	}
	ky_buf_deinit(&path);
}
