/* SPDX-License-Identifier: MIT */
#include "sessiond/model/filter.h"

#include "filter/context.h"

static bool find_context(const char *name, struct ky_filter_context *ret)
{
	char argument[KY_CTX_SPEC_MAX];
	uint32_t kind;

	*ret = (struct ky_filter_context){0};
	return ky_filter_context_find(name, ret, &kind, argument);
}

struct filter *filter_new(const char *text, struct ky_filter_error *error)
{
	return filter_new_with(text, find_context, error);
}

struct filter *filter_new_with(
	const char *text, ky_filter_find_context find, struct ky_filter_error *error)
{
	static uint32_t last_number;
	struct filter *f = calloc(1, sizeof(*f));
	int len;

	*error = (struct ky_filter_error){0};
	if (!f)
		return NULL;
	f->refs = 1;
	len = ky_filter_compile(text, find, f->program, error);
	f->text = len < 0 ? NULL : strdup(text);
	if (!f->text)
		return filter_unref(f);
	f->len = (uint32_t)len;
	f->number = ++last_number;
	return f;
}

struct filter *filter_ref(struct filter *f)
{
	if (f)
		f->refs++;
	return f;
}

struct filter *filter_unref(struct filter *f)
{
	if (!f || --f->refs)
		return NULL;
	free(f->text);
	free(f);
	return NULL;
}

/*
 * An event's fields: each table of them, with its end mark. A field that has fields has at least
 * one.
 */
struct tables {
	struct kymo_field fields[2 * KY_FIELDS_MAX + 1];
	unsigned n;
};

/* Fields of a checked description as programs have them, names borrowed. */
static const struct kymo_field *open_fields(struct tables *t, struct ky_desc desc)
{
	struct kymo_field *fields = t->fields + t->n, *to = fields;
	struct ky_desc_field f;

	t->n += desc.n_fields + 1;
	while (ky_desc_next_field(&desc, &f))
		*to++ = (struct kymo_field){f.kind, f.elem, f.size, f.flags, f.count, f.name,
			f.n_fields ? open_fields(t, ky_field_fields(&f)) : NULL};
	*to = (struct kymo_field){0};
	return fields;
}

static enum filter_match link_with(
	const struct filter *f, const struct event_desc *d, struct ky_filter_error *error)
{
	static uint64_t code[KY_FILTER_CODE_MAX / sizeof(uint64_t)];
	struct tables tables = {.n = 0};
	struct ky_desc desc;
	int ret;

	ky_desc_open(&desc, event_desc_bytes(d));
	ret = ky_filter_link(
		f->program, f->len, open_fields(&tables, desc), find_context, code, error);
	if (ret > 0)
		return FILTER_MATCHES;
	return ret == -ENOENT ? FILTER_MISSES_FIELD : FILTER_MISTAKES_FIELD;
}

enum filter_match filter_match(struct filter *f, const struct event_desc *d)
{
	__typeof__(*f->cache) *known = &f->cache[d->serial % FILTER_CACHE];
	struct ky_filter_error error;

	if (known->serial != d->serial) {
		known->serial = d->serial;
		known->match = link_with(f, d, &error);
	}
	return known->match;
}

void filter_explain(
	const struct filter *f, const struct event_desc *d, struct ky_filter_error *error)
{
	size_t n;

	if (link_with(f, d, error) == FILTER_MATCHES) {
		error->text[0] = '\0';
		return;
	}
	error->position = ky_filter_position(f->text, error);
	n = strlen(error->text);
	if (error->position)
		snprintf(error->text + n, sizeof(error->text) - n,
			", at character %u of the filter", error->position);
}
