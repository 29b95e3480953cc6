/* SPDX-License-Identifier: MIT */
#include "cli/with.h"

#include <glob.h>
#include <limits.h>

#include "base/buf.h"
#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"

bool with_has(struct cli *cli, const char *library)
{
	const char *given;
	size_t iter = 0;

	while ((given = cli_args_next(&cli->args, "with", &iter)))
		if (strstr(given, library))
			return true;
	return false;
}

/* Puts value in front of (or behind) the list that the variable holds, separated by a colon. */
static int extend_variable(const char *variable, const char *value, bool in_front)
{
	const char *old = getenv(variable);
	struct ky_buf b = {0};
	int r;

	if (old && *old && in_front)
		ky_buf_printf(&b, "%s:%s", value, old);
	else if (old && *old)
		ky_buf_printf(&b, "%s:%s", old, value);
	else
		ky_buf_puts(&b, value);
	r = b.error;
	if (!r && setenv(variable, b.data, 1) < 0)
		r = -errno;
	ky_buf_deinit(&b);
	return r;
}

int with_lttng(struct cli *cli)
{
	char dir[PATH_MAX];

	if (cli_locate_lttng_dir(dir) < 0)
		return cli_fail(cli, "unsupported",
			"liblttng-ust.so.1 of Kymo's, which --with=lttng needs, is not installed");
	if (strchr(dir, ':'))
		return cli_fail(cli, "failed",
			"%s cannot be searched for libraries: its path has a colon", dir);
	return extend_variable("LD_LIBRARY_PATH", dir, true) < 0
		       ? cli_fail(cli, "failed", "no memory")
		       : CLI_OK;
}

/* The libraries of --with. */
static const struct library {
	const char *name, *provider; /* of its events */
	bool has_addresses;	     /* of code, in fields of its events */
} libraries[] = {
	{"libc", "libc", true},
	{"pthread", "pthread", true},
	{"dl", "dl", false},
	{"crash", "crash", true},
	{"cyg-profile", "cyg_profile", true},
};

static bool any_begins_with(const struct kymo_value *patterns, const char *provider)
{
	size_t len = strlen(provider);

	for (size_t i = 0; i < kymo_value_count(patterns); i++) {
		const char *pattern = kymo_value_string(kymo_value_at(patterns, i));

		if (!strncmp(pattern, provider, len) && pattern[len] == ':')
			return true;
	}
	return false;
}

/* The user asked for the library: --event of other providers does not exclude its events. */
static int add_rule_of(struct cli *cli, struct kymo_value *rules, const char *provider)
{
	char pattern[32];

	if (!cli_has(cli, "event") || any_begins_with(kymo_value_get(rules, "patterns"), provider))
		return CLI_OK;
	snprintf(pattern, sizeof(pattern), "%s:*", provider);
	return cli_params_list(cli, rules, "patterns", pattern);
}

/*
 * Returns the begin of a path for LD_PRELOAD, which is absolute from there on. musl's dynamic
 * linker ends a program that cannot use a preloaded library, for example because it was made for
 * glibc, but ignores a path that does not exist. Only glibc's replaces $ORIGIN by the program's
 * directory, from which as many steps up lead to the root.
 */
static const char *way_to_root(void)
{
#ifdef __GLIBC__
#define UP_8 "/../../../../../../../.."
	glob_t found;
	bool has_musl = glob("/lib/ld-musl-*", 0, NULL, &found) == 0;

	if (has_musl) {
		globfree(&found);
		return "$ORIGIN" UP_8 UP_8 UP_8 UP_8 UP_8 UP_8 UP_8 UP_8;
	}
#endif
	return "";
}

static int preload(struct cli *cli, const char *name, struct kymo_value *rules)
{
	const struct library *l = libraries, *end = l + KY_ARRAY_SIZE(libraries);
	char file[64], path[PATH_MAX], value[PATH_MAX + 256];

	if (!strcmp(name, "lttng"))
		return with_lttng(cli);
	while (l < end && strcmp(l->name, name))
		l++;
	if (l == end)
		return cli_usage(cli,
			"'%s' is none of libc, pthread, dl, crash, cyg-profile and lttng", name);
	snprintf(file, sizeof(file), "libkymo-%s.so", name);
	if (cli_locate_preload(path, sizeof(path), file) < 0)
		return cli_fail(cli, "unsupported", "%s, which --with=%s needs, is not installed",
			file, name);
	if (strpbrk(path, ": "))
		return cli_fail(cli, "failed",
			"%s cannot be preloaded: its path has a colon or a space", path);
	snprintf(value, sizeof(value), "%s%s", way_to_root(), path);
	if (extend_variable("LD_PRELOAD", value, true) < 0)
		return cli_fail(cli, "failed", "no memory");
	return add_rule_of(cli, rules, l->provider);
}

bool with_addresses(struct cli *cli)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(libraries); i++)
		if (libraries[i].has_addresses && with_has(cli, libraries[i].name))
			return true;
	return false;
}

/*
 * Allows programs that were built with sanitizers. By default, one with -fsanitize=address does not
 * start if other libraries precede the sanitizer's, and a child of fork() ends in one with
 * -fsanitize=thread when it starts a thread, as libkymo does. All of this works all the same.
 */
static int allow_sanitizers(struct cli *cli)
{
	int r = extend_variable("TSAN_OPTIONS", "die_after_fork=0", true);

	if (!r && cli_has(cli, "with"))
		r = extend_variable("ASAN_OPTIONS", "verify_asan_link_order=0", true);
	return r < 0 ? cli_fail(cli, "failed", "no memory") : CLI_OK;
}

int with_preload(struct cli *cli, struct kymo_value *rules)
{
	const char *given;
	size_t iter = 0;
	int code = allow_sanitizers(cli);

	while (!code && (given = cli_args_next(&cli->args, "with", &iter))) {
		_cleanup_value_ struct kymo_value *v = cli_params_new(cli);
		const struct kymo_value *names;

		code = v ? cli_params_list(cli, v, "names", given) : CLI_FAILED;
		names = kymo_value_get(v, "names");
		for (size_t i = 0; i < kymo_value_count(names) && !code; i++)
			code = preload(cli, kymo_value_string(kymo_value_at(names, i)), rules);
	}
	return code;
}

int with_library_path(struct cli *cli)
{
	char dir[PATH_MAX];

	if (cli_locate_tracer_dir(dir) < 0 || cli_is_system_libdir(dir))
		return CLI_OK;
	return extend_variable("LD_LIBRARY_PATH", dir, false) < 0
		       ? cli_fail(cli, "failed", "no memory")
		       : CLI_OK;
}
