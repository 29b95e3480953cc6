/* SPDX-License-Identifier: MIT */
#include "cli/agents.h"

#include <inttypes.h>

#include "base/util.h"

struct agent_level {
	const char *name;
	int32_t number;
};

static const struct agent_level python_levels[] = {
	{"CRITICAL", 50},
	{"ERROR", 40},
	{"WARNING", 30},
	{"INFO", 20},
	{"DEBUG", 10},
	{"NOTSET", 0},
	{0},
};

static const struct agent_level jul_levels[] = {
	{"OFF", INT32_MAX},
	{"SEVERE", 1000},
	{"WARNING", 900},
	{"INFO", 800},
	{"CONFIG", 700},
	{"FINE", 500},
	{"FINER", 400},
	{"FINEST", 300},
	{"ALL", INT32_MIN},
	{0},
};

static const struct agent_level log4j_levels[] = {
	{"OFF", INT32_MAX},
	{"FATAL", 50000},
	{"ERROR", 40000},
	{"WARN", 30000},
	{"INFO", 20000},
	{"DEBUG", 10000},
	{"TRACE", 5000},
	{"ALL", INT32_MIN},
	{0},
};

/* Log4j 2 counts in the other direction: a smaller number is more severe. */
static const struct agent_level log4j2_levels[] = {
	{"OFF", 0},
	{"FATAL", 100},
	{"ERROR", 200},
	{"WARN", 300},
	{"INFO", 400},
	{"DEBUG", 500},
	{"TRACE", 600},
	{"ALL", INT32_MAX},
	{0},
};

static const struct cli_agent_domain domains[] = {
	{"python", "lttng_python:event", python_levels},
	{"jul", "lttng_jul:event", jul_levels},
	{"log4j", "lttng_log4j:event", log4j_levels},
	{"log4j2", "lttng_log4j2:event", log4j2_levels},
};

bool agents_are_meant(struct cli *cli)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(domains); i++)
		if (cli_has(cli, domains[i].option))
			return true;
	return false;
}

const struct cli_agent_domain *agents_named(const char *name)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(domains); i++)
		if (!strcasecmp(name, domains[i].option))
			return &domains[i];
	return NULL;
}

int agents_domain(struct cli *cli, const struct cli_agent_domain **ret_domain)
{
	*ret_domain = NULL;
	for (size_t i = 0; i < KY_ARRAY_SIZE(domains); i++) {
		if (!cli_has(cli, domains[i].option))
			continue;
		if (*ret_domain)
			return cli_usage(cli, "either --%s or --%s, not both",
				(*ret_domain)->option, domains[i].option);
		*ret_domain = &domains[i];
	}
	return CLI_OK;
}

/* INFO, PYTHON_INFO or 20. */
static bool parse_level(const struct cli_agent_domain *d, const char *text, int64_t *ret_level)
{
	const size_t n = strlen(d->option);
	const char *name = text;
	char *end;

	if (!strncasecmp(text, d->option, n) && text[n] == '_')
		name = text + n + 1;
	for (const struct agent_level *l = d->levels; l->name; l++) {
		if (strcasecmp(name, l->name) != 0)
			continue;
		*ret_level = l->number;
		return true;
	}
	errno = 0;
	*ret_level = strtoll(text, &end, 10);
	return !errno && *text && !*end && *ret_level >= INT32_MIN && *ret_level <= INT32_MAX;
}

static int refuse_level(struct cli *cli, const struct cli_agent_domain *d, const char *text)
{
	struct ky_buf names = {0};
	int code;

	for (const struct agent_level *l = d->levels; l->name; l++)
		ky_buf_printf(&names, "%s%s", l == d->levels ? "" : ", ", l->name);
	code = cli_usage(cli, "'%s' is not a level of --%s: use %s, or a number", text, d->option,
		names.data ? names.data : "");
	ky_buf_deinit(&names);
	return code;
}

static void put_and(struct ky_buf *to)
{
	if (to->len)
		ky_buf_puts(to, " && ");
}

static int put_level(struct cli *cli, const struct cli_agent_domain *d, struct ky_buf *to)
{
	const char *least = cli_get(cli, "loglevel"), *only = cli_get(cli, "loglevel-only");
	const char *text = least ? least : only, *comparison = "==";
	int64_t level;

	if (least && only)
		return cli_usage(cli, "either --loglevel or --loglevel-only, not both");
	if (!text)
		return CLI_OK;
	if (!parse_level(d, text, &level))
		return refuse_level(cli, d, text);
	if (least)
		comparison = d->levels == log4j2_levels ? "<=" : ">=";
	put_and(to);
	ky_buf_printf(to, "int_loglevel %s %" PRId64, comparison, level);
	return CLI_OK;
}

void agents_put_logger(struct ky_buf *to, const char *logger)
{
	ky_buf_puts(to, "logger_name == \"");
	for (; *logger; logger++) {
		if (*logger == '"')
			ky_buf_puts(to, "\\");
		ky_buf_append(to, logger, 1);
	}
	ky_buf_puts(to, "\"");
}

static void put_loggers(struct ky_buf *to, const struct kymo_value *loggers)
{
	const size_t n = kymo_value_count(loggers);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(kymo_value_string(kymo_value_at(loggers, i)), "*"))
			return;
	for (size_t i = 0; i < n; i++) {
		ky_buf_puts(to, i ? " || " : n > 1 ? "(" : "");
		agents_put_logger(to, kymo_value_string(kymo_value_at(loggers, i)));
	}
	ky_buf_puts(to, n > 1 ? ")" : "");
}

int agents_filter(struct cli *cli, const struct cli_agent_domain *d,
	const struct kymo_value *loggers, struct ky_buf *to)
{
	const char *filter = cli_get(cli, "filter");
	int code;

	put_loggers(to, loggers);
	code = put_level(cli, d, to);
	if (code || !filter)
		return code;
	put_and(to);
	ky_buf_printf(to, "(%s)", filter);
	return to->error ? cli_fail(cli, "failed", "no memory") : CLI_OK;
}

bool agents_filter_names(const char *filter, const char *logger)
{
	struct ky_buf own = {0};
	bool names;

	agents_put_logger(&own, logger);
	names = own.data && !strncmp(filter, own.data, own.len) &&
		(!filter[own.len] || !strncmp(filter + own.len, " && ", 4));
	ky_buf_deinit(&own);
	return names;
}
