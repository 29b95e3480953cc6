/* SPDX-License-Identifier: MIT */
#include "cli/params.h"

#include <inttypes.h>
#include <limits.h>

#include "cli/locate.h"
#include "cli/text.h"

struct kymo_value *cli_params_new(struct cli *cli)
{
	struct kymo_value *params = kymo_value_new();

	if (!params)
		cli_fail(cli, "failed", "no memory");
	return params;
}

int cli_params_added(struct cli *cli, int r)
{
	return r < 0 ? cli_fail(cli, "failed", "%s", strerror(-r)) : CLI_OK;
}

static int parse_amount(const char *text, enum cli_amount kind, uint64_t *ret_value)
{
	switch (kind) {
	case CLI_SIZE:
		return ky_parse_size(text, ret_value);
	case CLI_USEC:
		return ky_parse_usec(text, ret_value);
	case CLI_SECONDS:
		return ky_parse_seconds(text, ret_value);
	default:
		return ky_parse_number(text, UINT64_MAX, ret_value);
	}
}

/* Writes a bound of an amount. Returns text. */
static const char *put_bound(char text[32], enum cli_amount kind, uint64_t bound)
{
	if (kind == CLI_USEC || kind == CLI_SECONDS)
		return cli_format_usec(text, 32, bound, "");
	snprintf(text, 32, "%" PRIu64 "%s", bound,
		kind == CLI_NUMBER ? ""
		: bound == 1	   ? " byte"
				   : " bytes");
	return text;
}

static int read_amount(struct cli *cli, const char *option, const char *text, enum cli_amount kind,
	uint64_t least, uint64_t most, uint64_t *value)
{
	static const char *const forms[] = {[CLI_NUMBER] = "number",
		[CLI_SIZE] = "size: write a number of bytes, or one with K, M or G",
		[CLI_USEC] = "time: write a number of microseconds, or one with us, ms, s, m or h",
		[CLI_SECONDS] = "time: write a number of seconds, or one with us, ms, s, m or h"};
	uint64_t v = 0;
	char bound[32];
	int r = parse_amount(text, kind, &v);

	if (r == -EINVAL)
		return cli_usage(cli, "--%s: '%s' is not a %s", option, text, forms[kind]);
	if (r < 0 || v > most)
		return cli_usage(cli, "--%s: '%s' is too large: it can be at most %s", option, text,
			put_bound(bound, kind, most));
	if (v < least)
		return cli_usage(cli, "--%s: '%s' is too small: it must be at least %s", option,
			text, put_bound(bound, kind, least));
	*value = v;
	return CLI_OK;
}

int cli_read_amount(struct cli *cli, const char *option, enum cli_amount kind, uint64_t least,
	uint64_t most, uint64_t *value)
{
	const char *text = cli_get(cli, option);

	return text ? read_amount(cli, option, text, kind, least, most, value) : CLI_OK;
}

int cli_params_session(struct cli *cli, struct kymo_value *params)
{
	const char *session = cli_get(cli, "session");

	return session ? cli_params_added(cli, kymo_value_set_string(params, "session", session))
		       : CLI_OK;
}

int cli_params_which(struct cli *cli, struct kymo_value *params)
{
	const char *name = cli_arg(cli, 0);
	int r = 0;

	if (name && cli_has(cli, "session"))
		return cli_usage(cli, "either NAME or --session=NAME, not both");
	if (name)
		r = kymo_value_set_string(params, "session", name);
	return r ? cli_params_added(cli, r) : cli_params_session(cli, params);
}

int cli_params_which_or_all(struct cli *cli, struct kymo_value *params)
{
	if (!cli_has(cli, "all"))
		return cli_params_which(cli, params);
	if (cli_arg(cli, 0) || cli_has(cli, "session"))
		return cli_usage(cli, "give either the name of a session or --all, not both");
	return cli_params_added(cli, kymo_value_set_bool(params, "all", true));
}

int cli_params_no_wait(struct cli *cli, struct kymo_value *params)
{
	return cli_has(cli, "no-wait")
		       ? cli_params_added(cli, kymo_value_set_bool(params, "no_wait", true))
		       : CLI_OK;
}

int cli_choose_output(struct cli *cli, const char *session, bool dated, char *output)
{
	const char *given = cli_get(cli, "output");
	char traces[PATH_MAX];
	int r;

	if (given) {
		r = cli_absolute_path(output, PATH_MAX, given);
		return r < 0 ? cli_fail(cli, "failed", "%s: %s", given, strerror(-r)) : CLI_OK;
	}
	if (cli_locate_traces(traces, sizeof(traces)) < 0)
		return cli_fail(cli, "failed",
			"no place for the trace: set KYMO_HOME, or give --output=DIR");
	r = cli_make_output(output, PATH_MAX, session, dated);
	return r < 0 ? cli_fail(cli, "failed",
			       "cannot make a directory for the trace in %s: %s: set KYMO_HOME, or give --output=DIR",
			       traces, strerror(-r))
		     : CLI_OK;
}

int cli_params_list(struct cli *cli, struct kymo_value *params, const char *name, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *part;
	int r = copy ? 0 : -ENOMEM;

	while (!r && (part = strsep(&rest, ","))) {
		if (!*part)
			return cli_usage(cli,
				"'%s' has an empty name: separate names by single commas", text);
		r = kymo_value_add_string(params, name, part);
	}
	return cli_params_added(cli, r);
}

int cli_params_patterns(struct cli *cli, struct kymo_value *params)
{
	int code = CLI_OK;

	if (cli_has(cli, "all") && cli_arg(cli, 0))
		return cli_usage(cli, "either patterns or --all, not both");
	if (!cli_arg(cli, 0) && !cli_has(cli, "all"))
		return cli_usage(cli,
			"no pattern is given: write 'PROVIDER:NAME', where '*' matches any characters, or --all");
	for (size_t i = 0; cli_arg(cli, i) && !code; i++)
		code = cli_params_list(cli, params, "patterns", cli_arg(cli, i));
	return code;
}

int cli_params_contexts(struct cli *cli, struct kymo_value *params, const char *option)
{
	const char *given;
	size_t iter = 0;
	int code = CLI_OK;

	while (!code && (given = cli_args_next(&cli->args, option, &iter)))
		code = cli_params_list(cli, params, "contexts", given);
	return code;
}

int cli_params_rules(struct cli *cli, struct kymo_value *params)
{
	const char *given;
	size_t iter = 0;
	int code = CLI_OK;

	while (!code && (given = cli_args_next(&cli->args, "event", &iter)))
		code = cli_params_list(cli, params, "patterns", given);
	if (!kymo_value_get(params, "patterns"))
		kymo_value_add_string(params, "patterns", "*");
	return code;
}

int cli_params_domain(struct cli *cli, struct kymo_value *params, bool channel)
{
	bool kernel = cli_has(cli, "kernel"), user = cli_has(cli, "userspace");

	if (kernel && user)
		return cli_usage(cli, "either --kernel or --userspace, not both");
	if (kernel || user)
		kymo_value_set_string(params, "domain", kernel ? "kernel" : "user");
	if (!kernel)
		return CLI_OK;
	if (channel && !cli_get(cli, "channel"))
		kymo_value_set_string(params, "channel", "kernel0");
	return CLI_OK;
}

int cli_params_filter(struct cli *cli, struct kymo_value *params)
{
	const char *filter = cli_get(cli, "filter");

	if (!filter)
		return CLI_OK;
	return cli_params_added(cli, kymo_value_set_string(params, "filter", filter));
}

static int add_level(
	struct cli *cli, struct kymo_value *params, const char *option, const char *member)
{
	const char *text = cli_get(cli, option), *near;
	int level;

	if (!text)
		return CLI_OK;
	if (cli_parse_loglevel(text, &level) < 0) {
		near = cli_nearest(text, ky_loglevel_names);
		return cli_usage(cli, "'%s' is no log level: %s%s", text,
			near ? "did you mean "
			     : "use EMERG, ALERT, CRIT, ERR, WARNING, NOTICE, INFO, DEBUG_SYSTEM .. DEBUG_LINE, DEBUG or 0 .. 14 (loggers of Log4j: --log4j)",
			near ? near : "");
	}
	kymo_value_set_u64(params, member, (uint64_t)level);
	return CLI_OK;
}

int cli_params_levels(struct cli *cli, struct kymo_value *params)
{
	int code;

	if (cli_has(cli, "loglevel") && cli_has(cli, "loglevel-only"))
		return cli_usage(cli, "either --loglevel or --loglevel-only, not both");
	code = add_level(cli, params, "loglevel", "loglevel");
	return code ? code : add_level(cli, params, "loglevel-only", "loglevel_only");
}

char *cli_param_name(char *key)
{
	for (char *p = key; *p; p++)
		if (*p == '-')
			*p = '_';
	return key;
}

int cli_params_option(
	struct cli *cli, struct kymo_value *params, const char *key, const char *value)
{
	_cleanup_free_ char *name = strdup(key);

	return cli_params_added(
		cli, name ? kymo_value_set_string(params, cli_param_name(name), value) : -ENOMEM);
}

/* The request has other members of these names. */
static bool is_reserved(const char *key)
{
	return !strcmp(key, "session") || !strcmp(key, "channel") || !strcmp(key, "command");
}

void cli_pair_key(char key[CLI_KEY_MAX], const char *pair)
{
	snprintf(key, CLI_KEY_MAX, "%.*s", (int)KY_MIN(strcspn(pair, "="), (size_t)CLI_KEY_MAX),
		pair);
}

int cli_params_pair(struct cli *cli, struct kymo_value *params, const char *pair)
{
	const char *value = pair + strcspn(pair, "=");
	char key[CLI_KEY_MAX];

	if (value == pair || !value[0] || !value[1])
		return cli_usage(
			cli, "'%s' is not of the form KEY=VALUE: 'kymo set' shows the keys", pair);
	cli_pair_key(key, pair);
	if (is_reserved(key))
		return cli_usage(cli,
			"'%s' is not an option of a channel: use --session and --channel", key);
	return cli_params_option(cli, params, key, value + 1);
}

int cli_params_shm_path(struct cli *cli, struct kymo_value *params)
{
	const char *given = cli_get(cli, "shm-path");
	char path[PATH_MAX];
	int r;

	if (!given)
		return CLI_OK;
	r = cli_absolute_path(path, sizeof(path), given);
	if (!r)
		r = kymo_value_set_string(params, "shm_path", path);
	return r < 0 ? cli_fail(cli, "failed", "%s: %s", given, strerror(-r)) : CLI_OK;
}

int cli_params_buffers(struct cli *cli, struct kymo_value *params)
{
	const char *buffers = cli_get(cli, "buffers"), *pool = cli_get(cli, "pool-size");
	const char *burst = cli_get(cli, "burst-size");
	uint64_t size = 0, count = 0;
	int code, r = 0;

	code = cli_read_amount(cli, "subbuf-size", CLI_SIZE, 1, INT64_MAX, &size);
	if (!code)
		code = cli_read_amount(cli, "num-subbuf", CLI_NUMBER, 1, UINT32_MAX, &count);
	if (code)
		return code;
	if (size)
		r = kymo_value_set_u64(params, "subbuf_size", size);
	if (count && !r)
		r = kymo_value_set_u64(params, "num_subbuf", count);
	if (buffers && !r)
		r = kymo_value_set_string(params, "buffers", buffers);
	if (burst && !r)
		r = kymo_value_set_string(params, "burst_size", burst);
	if (pool && !r)
		r = kymo_value_set_string(params, "pool_size", pool);
	return cli_params_added(cli, r);
}

int cli_params_amount(struct cli *cli, struct kymo_value *params, const char *option,
	enum cli_amount kind, const char *member)
{
	uint64_t v = 0;
	int code = cli_read_amount(cli, option, kind, 1, INT64_MAX, &v);

	return code || !v ? code : cli_params_added(cli, kymo_value_set_u64(params, member, v));
}

/* A number of chunks, a size (K, M or G), or an age (s, m, h or d). */
static int add_keep(struct cli *cli, struct kymo_value *params, const char *text)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t v = 0;
	int code;

	if (digits && strchr("KMG", text[digits]) && text[digits]) {
		code = read_amount(cli, "keep", text, CLI_SIZE, 1, INT64_MAX, &v);
		return code ? code
			    : cli_params_added(cli, kymo_value_set_u64(params, "keep_bytes", v));
	}
	if (digits && !text[digits] && !ky_parse_number(text, INT64_MAX, &v) && v)
		return cli_params_added(cli, kymo_value_set_u64(params, "keep_chunks", v));
	if (digits && digits < 10 && !strcmp(text + digits, "d"))
		v = strtoull(text, NULL, 10) * 24 * 3600;
	else if (digits && text[digits] && !ky_parse_usec(text, &v))
		v /= 1000000;
	if (!digits || !v || v > INT32_MAX)
		return cli_usage(cli,
			"--keep: '%s' is neither a number of chunks, nor a size with K, M or G, nor an age with s, m, h or d",
			text);
	return cli_params_added(cli, kymo_value_set_u64(params, "keep_s", v));
}

int cli_params_seconds(struct cli *cli, struct kymo_value *params)
{
	if (cli_has(cli, "seconds") && !cli_has(cli, "snapshot"))
		return cli_usage(cli, "--seconds needs --snapshot");
	return cli_params_amount(cli, params, "seconds", CLI_NUMBER, "seconds");
}

int cli_params_bounds(struct cli *cli, struct kymo_value *params, bool keep, bool *ret_any)
{
	int code = cli_params_amount(cli, params, "max-disk", CLI_SIZE, "max_disk");
	const char *text;
	size_t iter = 0;

	*ret_any = cli_has(cli, "max-disk") || cli_has(cli, "keep-free");
	if (!code)
		code = cli_params_amount(cli, params, "keep-free", CLI_SIZE, "keep_free");
	while (keep && !code && (text = cli_args_next(&cli->args, "keep", &iter))) {
		*ret_any = true;
		code = add_keep(cli, params, text);
	}
	return code;
}
