/* SPDX-License-Identifier: MIT */
#include "filter/context.h"

/*
 * Compares a counter's name a with b, which has '_' for each character that is no letter or digit.
 */
static bool same_counter(const char *a, const char *b)
{
	while (*a && (*a == *b || (*a == '-' && *b == '_'))) {
		a++;
		b++;
	}
	return !*a && !*b;
}

static uint32_t find_counter(const char *name, char *argument)
{
	for (const struct ky_ctx_counter *c = ky_ctx_counters; c->name[0]; c++) {
		if (!same_counter(c->name, name))
			continue;
		snprintf(argument, KY_CTX_SPEC_MAX, "%x:%llx", c->type,
			(unsigned long long)c->config);
		return KY_CTX_PERF;
	}
	return KY_CTX_NONE;
}

static uint32_t find_kind(const char *name, char *argument)
{
	static const char perf[] = "perf_thread_", app[] = "$app.";

	*argument = '\0';
	if (!strncmp(name, perf, sizeof(perf) - 1))
		return find_counter(name + sizeof(perf) - 1, argument);
	if (!strncmp(name, app, sizeof(app) - 1)) {
		snprintf(argument, KY_CTX_SPEC_MAX, "%s", name + sizeof(app) - 1);
		return strchr(argument, ':') ? KY_CTX_APP : KY_CTX_NONE;
	}
	for (const struct ky_ctx_type *t = ky_ctx_types; t->name[0]; t++)
		if (!strcmp(t->name, name))
			return t->kind;
	return KY_CTX_NONE;
}

bool ky_filter_context_find(
	const char *name, struct ky_filter_context *ret, uint32_t *ret_kind, char *ret_argument)
{
	const struct ky_ctx_type *t;

	*ret_kind = find_kind(name, ret_argument);
	t = ky_ctx_type(*ret_kind);
	if (!t || t->field == KYMO_FIELD_ARRAY)
		return false;
	if (*ret_kind == KY_CTX_APP)
		ret->type = KY_FILTER_ANY;
	else if (t->field == KYMO_FIELD_TEXT)
		ret->type = KY_FILTER_STRING;
	else
		ret->type = t->field == KYMO_FIELD_UINT && t->size == 8 ? KY_FILTER_UNSIGNED
									: KY_FILTER_SIGNED;
	return true;
}
