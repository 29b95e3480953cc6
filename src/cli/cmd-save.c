/* SPDX-License-Identifier: MIT */
/* save: writes sessions as JSON, from which `kymo load` makes them again. */
#include <fcntl.h>
#include <json-c/json.h>
#include <sys/stat.h>

#include "cli/daemon.h"
#include "cli/params.h"
#include "cli/profile.h"
#include "export/out.h"

static const struct cli_option options[] = {
	CLI_OPTION_SESSION,
	CLI_OPTION_ALL_SESSIONS,
	{"output", 'o', "FILE", "write to this file instead of standard output"},
	{"force", 'f', NULL, "overwrite the file if it exists"},
	{0},
};

static int add_session(struct cli *cli, struct kymo_ctl *ctl, const struct kymo_value *params,
	struct json_object *profile)
{
	_cleanup_value_ struct kymo_value *reply = NULL, *triggers = NULL, *named = NULL;
	int code = cli_call(cli, ctl, "status", params, &reply), r;

	if (!code)
		named = cli_params_new(cli);
	if (code || !named)
		return code ? code : CLI_FAILED;
	kymo_value_set_string(named, "session",
		kymo_value_string(kymo_value_get(kymo_value_get(reply, "session"), "name")));
	code = cli_call(cli, ctl, "list-triggers", named, &triggers);
	if (code)
		return code;
	r = profile_add(
		profile, kymo_value_get(reply, "session"), kymo_value_get(triggers, "triggers"));
	return cli_params_added(cli, r);
}

static int add_all(struct cli *cli, struct kymo_ctl *ctl, struct json_object *profile)
{
	_cleanup_value_ struct kymo_value *all = NULL, *params = cli_params_new(cli);
	const struct kymo_value *sessions;
	int code = params ? cli_call(cli, ctl, "list", NULL, &all) : CLI_FAILED;

	sessions = kymo_value_get(all, "sessions");
	for (size_t i = 0; i < kymo_value_count(sessions) && !code; i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);

		if (kymo_value_u64(kymo_value_get(s, "owner")) != geteuid())
			continue;
		kymo_value_set_string(
			params, "session", kymo_value_string(kymo_value_get(s, "name")));
		code = add_session(cli, ctl, params, profile);
	}
	return code;
}

/* An old file stays if the new one cannot be written. */
static int write_file(struct cli *cli, const char *path, const char *text)
{
	struct ky_out out;
	struct stat st;
	int r;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return cli_fail(cli, "exists", "%s is a directory: -o names a file", path);
	if (!cli_has(cli, "force") && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return cli_fail(cli, "exists", "%s exists already: --force overwrites it", path);
	if (!ky_out_may_replace(path))
		return cli_fail(cli, "exists", "%s is no regular file", path);
	ky_out_open(&out, path, NULL);
	ky_buf_puts(&out.buf, text);
	ky_buf_puts(&out.buf, "\n");
	r = ky_out_close(&out, true);
	return r < 0 ? cli_fail(cli, "failed", "cannot write %s: %s", path, strerror(-r))
		     : cli_result_output(cli, path);
}

static int write_profile(struct cli *cli, struct json_object *profile)
{
	const char *path = cli_get(cli, "output");
	const char *text = json_object_to_json_string_ext(profile,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!text)
		return cli_fail(cli, "failed", "no memory");
	if (path && strcmp(path, "-") != 0)
		return write_file(cli, path, text);
	if (cli->json)
		cli_print_json(cli, text);
	else
		puts(text);
	return CLI_OK;
}

static int run_save(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli);
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	struct json_object *profile = profile_new();
	int code = params && profile ? cli_params_which_or_all(cli, params) : CLI_FAILED;

	if (!code)
		code = cli_connect(cli, &ctl);
	if (!code)
		code = cli_has(cli, "all") ? add_all(cli, ctl, profile)
					   : add_session(cli, ctl, params, profile);
	if (!code)
		code = write_profile(cli, profile);
	json_object_put(profile);
	return code;
}

const struct cli_command cmd_save = {
	.name = "save",
	.synopsis = "[[-s] NAME | -a] [-o FILE] [-f]",
	.help = "write sessions as JSON, for 'kymo load'",
	.details = "Channels, rules, contexts, trackers, rotations: everything but the events.\n",
	.options = options,
	.max_args = 1,
	.run = run_save,
};
