/* SPDX-License-Identifier: MIT */
#include "sessiond/model/rule.h"

#include <ctype.h>

#include "base/glob.h"

struct rule *rule_free(struct rule *r)
{
	if (!r)
		return NULL;
	for (uint32_t i = 0; i < r->n_exclusions; i++)
		free(r->exclusions[i]);
	free(r->exclusions);
	free(r->pattern);
	free(r->probe);
	free(r->place);
	filter_unref(r->filter);
	free(r->mismatch);
	for (unsigned i = 0; i < r->n_similar; i++)
		free(r->similar[i]);
	free(r);
	return NULL;
}

struct rule *rule_new(const char *pattern, const char *const *exclusions, uint32_t n_exclusions,
	uint32_t level_type, int32_t level)
{
	struct rule *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	ky_list_init(&r->node);
	r->level_type = level_type;
	r->level = level;
	r->enabled = true;
	r->pattern = strdup(pattern);
	r->exclusions = calloc(n_exclusions + 1, sizeof(*r->exclusions));
	if (!r->pattern || !r->exclusions)
		return rule_free(r);
	for (; r->n_exclusions < n_exclusions; r->n_exclusions++) {
		r->exclusions[r->n_exclusions] = strdup(exclusions[r->n_exclusions]);
		if (!r->exclusions[r->n_exclusions])
			return rule_free(r);
	}
	return r;
}

struct rule **rules_free(struct rule **rules)
{
	for (size_t i = 0; rules && rules[i]; i++)
		rule_free(rules[i]);
	free(rules);
	return NULL;
}

static bool filters_equal(const struct filter *a, const struct filter *b)
{
	return a && b ? !strcmp(a->text, b->text) : a == b;
}

static bool probes_equal(const struct rule *a, const struct rule *b)
{
	return a->probe && b->probe ? !strcmp(a->probe, b->probe) : a->probe == b->probe;
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
	if (a->kind != b->kind || !probes_equal(a, b) || strcmp(a->pattern, b->pattern) ||
		a->n_exclusions != b->n_exclusions || a->level_type != b->level_type ||
		a->level != b->level || !filters_equal(a->filter, b->filter))
		return false;
	for (uint32_t i = 0; i < a->n_exclusions; i++)
		if (strcmp(a->exclusions[i], b->exclusions[i]))
			return false;
	return true;
}

static bool level_matches(const struct rule *r, int32_t loglevel)
{
	if (r->level_type == KY_LEVEL_AT_LEAST)
		return loglevel <= r->level; /* less is more severe */
	return r->level_type == KY_LEVEL_ALL || loglevel == r->level;
}

bool rule_matches(const struct rule *r, const char *name, int32_t loglevel)
{
	if (!level_matches(r, loglevel) || !ky_glob_match_event(r->pattern, name))
		return false;
	for (uint32_t i = 0; i < r->n_exclusions; i++)
		if (ky_glob_match(r->exclusions[i], name))
			return false;
	return true;
}

bool rule_wants(const struct rule *r, const struct event_desc *d)
{
	return rule_matches(r, d->name, d->loglevel) &&
	       (!r->filter || filter_match(r->filter, d) == FILTER_MATCHES);
}

void rule_note_mismatch(struct rule *r, const struct event_desc *d)
{
	struct ky_filter_error why;
	enum filter_match match;

	if (!r->filter || r->mismatch_kind == FILTER_MISTAKES_FIELD ||
		!rule_matches(r, d->name, d->loglevel))
		return;
	match = filter_match(r->filter, d);
	if (match <= r->mismatch_kind)
		return;
	r->mismatch_kind = match;
	free(r->mismatch);
	filter_explain(r->filter, d, &why);
	if (asprintf(&r->mismatch,
		    "rule '%s' with filter '%s' does not record event '%s', nor others like it: %s",
		    r->pattern, r->filter->text, d->name, why.text) < 0)
		r->mismatch = NULL;
}

void rule_encode(struct ky_writer *w, const struct rule *r)
{
	ky_write_str(w, r->pattern);
	ky_write_u32(w, r->level_type);
	ky_write_i32(w, r->level);
	ky_write_u32(w, r->n_exclusions);
	for (uint32_t i = 0; i < r->n_exclusions; i++)
		ky_write_str(w, r->exclusions[i]);
}

static void fold_case(char to[RULE_PATTERN_MAX + 1], const char *from, size_t max)
{
	size_t n;

	for (n = 0; from[n] && n < max; n++)
		to[n] = (char)tolower((unsigned char)from[n]);
	to[n] = '\0';
}

/* Returns true if a word of the name begins with the text: "order" is near "shop:order". */
static bool begins_a_word(const char *name, const char *text)
{
	for (const char *p = strstr(name, text); p; p = strstr(p + 1, text))
		if (p == name || !isalnum((unsigned char)p[-1]))
			return true;
	return false;
}

/*
 * The longest text that is compared letter by letter. The time for a name grows with the third
 * power of this length, and the daemon serves nobody meanwhile.
 */
#define NEAR_MAX 64u

/* The text before the first star must come near a beginning of the name. */
bool name_is_near(const char *pattern, const char *name)
{
	char a[RULE_PATTERN_MAX + 1], b[RULE_PATTERN_MAX + 1];
	size_t n = KY_MIN(strcspn(pattern, "*"), (size_t)RULE_PATTERN_MAX), least, len;
	unsigned limit = 1 + (unsigned)n / 5;

	if (n < 2)
		return false;
	fold_case(a, pattern, n);
	fold_case(b, name, RULE_PATTERN_MAX);
	if (begins_a_word(b, a))
		return true;
	if (n > NEAR_MAX)
		return false;
	len = least = strlen(b);
	if (pattern[n] == '*') {
		len = KY_MIN(len, n + limit);
		least = n - KY_MIN(n, (size_t)limit);
	}
	for (; len >= least && len; len--) {
		b[len] = '\0';
		if (ky_edit_distance(a, b, limit) <= limit)
			return true;
	}
	return false;
}

void rule_note_similar(struct rule *r, const char *name)
{
	if (r->n_similar == RULE_SIMILAR_MAX || r->n_compared == RULE_COMPARED_MAX)
		return;
	r->n_compared++;
	if (!name_is_near(r->pattern, name))
		return;
	for (unsigned i = 0; i < r->n_similar; i++)
		if (!strcmp(r->similar[i], name))
			return;
	r->similar[r->n_similar] = strdup(name);
	r->n_similar += r->similar[r->n_similar] != NULL;
}

bool name_is_meant(const char *wanted, const char *name)
{
	unsigned len = (unsigned)KY_MIN(strlen(wanted), strlen(name)), limit = 1 + len / 4;

	return ky_edit_distance(wanted, name, limit) <= KY_MIN(limit, len - !!len);
}
