/* SPDX-License-Identifier: MIT */
/* load: makes sessions from a profile that `kymo save` or `lttng save` wrote. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "cli/daemon.h"
#include "cli/lttng-profile.h"
#include "cli/params.h"
#include "cli/profile.h"

#define PROFILE_MAX (4u << 20) /* bytes */

static const struct cli_option options[] = {
	{"input-path", 'i', "PATH", "the profile, or its directory (default ~/.lttng/sessions)"},
	{"output", 'o', "DIR",
		"directory of the trace, instead of the profile's; must be new or empty"},
	{"override-name", 0, "NAME", "name of the session, instead of the profile's"},
	{"force", 'f', NULL, "destroy a session of the same name first"},
	{"missing", 0, NULL, "leave out sessions that exist already"},
	{0},
};

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Stores the path of the profile: NAME as a file, --input-path, or NAME.lttng in a directory. */
static int find_profile(struct cli *cli, char *path)
{
	const char *name = cli_arg(cli, 0), *dir = cli_get(cli, "input-path");
	const char *home = ky_env("LTTNG_HOME") ?: ky_env("HOME");
	char own[PATH_MAX];
	int n;

	if (dir && !is_directory(dir))
		n = snprintf(path, PATH_MAX, "%s", dir);
	else if (!name)
		return cli_usage(
			cli, "name a session, or a profile that 'kymo save' or 'lttng save' wrote");
	else if (!dir && (strchr(name, '/') || !access(name, F_OK)))
		n = snprintf(path, PATH_MAX, "%s", name);
	else if (dir)
		n = snprintf(path, PATH_MAX, "%s/%s.lttng", dir, name);
	else {
		snprintf(own, sizeof(own), "%s/.lttng/sessions", home ? home : "");
		n = snprintf(path, PATH_MAX, "%s/%s.lttng", own, name);
	}
	return n < PATH_MAX ? CLI_OK : cli_usage(cli, "the path is too long");
}

/* Reads a file. The caller frees the text. Returns NULL after a report. */
static char *read_text(struct cli *cli, const char *path)
{
	/* A FIFO without a writer is empty, and does not block. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *text = calloc(1, PROFILE_MAX + 2);
	char *result = NULL;
	size_t len = 0;
	ssize_t n = 1;

	if (fd >= 0)
		fcntl(fd, F_SETFL, 0);
	while (fd >= 0 && text && len <= PROFILE_MAX && n > 0) {
		n = read(fd, text + len, PROFILE_MAX + 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || n < 0)
		cli_fail(cli, errno == ENOENT ? "not-found" : "failed", "cannot read %s: %s", path,
			strerror(errno));
	else if (!text || len > PROFILE_MAX)
		cli_fail(cli, "failed", "%s is too large", path);
	else {
		result = text;
		text = NULL;
	}
	return result;
}

static int load_xml(
	struct cli *cli, struct kymo_ctl *ctl, const struct xml *session, struct kymo_value *loaded)
{
	const char *name = cli_get(cli, "override-name");
	int code = CLI_OK;

	name = name ? name : xml_text(session, "name");
	if (cli_has(cli, "force"))
		code = profile_destroy_old(cli, ctl, name);
	if (!code)
		code = lttng_profile_load(cli, ctl, session, name);
	if (code)
		return code;
	kymo_value_add_string(loaded, "sessions", name);
	if (!cli->json)
		printf("session '%s' loaded%s\n", cli_safe(cli, name),
			!strcmp(xml_text(session, "started"), "true") ? ", and started" : "");
	return CLI_OK;
}

/* A profile of `lttng save`. */
static int load_lttng(struct cli *cli, struct kymo_ctl **ctl, const char *path, const char *text,
	struct kymo_value *loaded)
{
	struct xml *root = xml_parse(text, strlen(text));
	const struct xml *session = root ? lttng_profile_first(root) : NULL;
	int code = CLI_OK;

	if (!session)
		code = cli_fail(cli, "failed",
			"%s is no profile of sessions: neither JSON of 'kymo save' nor XML of 'lttng save'",
			path);
	else if (cli_has(cli, "missing"))
		code = cli_usage(cli, "--missing works only with profiles of 'kymo save'");
	else if (xml_next(session) && (cli_has(cli, "override-name") || cli_has(cli, "output")))
		code = cli_usage(
			cli, "%s has several sessions: they keep their names and outputs", path);
	if (!code && !*ctl)
		code = cli_connect_or_start(cli, ctl);
	for (; session && !code; session = xml_next(session))
		code = load_xml(cli, *ctl, session, loaded);
	xml_free(root);
	return code;
}

/* Connects, and starts a daemon if none runs, once there is a profile to load. */
static int load_file(
	struct cli *cli, struct kymo_ctl **ctl, const char *path, struct kymo_value *loaded)
{
	const struct profile_options how = {.name = cli_get(cli, "override-name"),
		.output = cli_get(cli, "output"),
		.force = cli_has(cli, "force"),
		.missing = cli_has(cli, "missing")};
	_cleanup_free_ char *text = read_text(cli, path);

	if (!text)
		return CLI_FAILED;
	return text[strspn(text, " \t\r\n")] == '{'
		       ? profile_load(cli, ctl, path, text, &how, loaded)
		       : load_lttng(cli, ctl, path, text, loaded);
}

static int is_profile(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return e->d_name[0] != '.' && len > 5 && !strcmp(e->d_name + len - 5, ".json");
}

/*
 * Loads each *.json of a directory, in the order of their names, also after one that fails: the
 * JSON object says both.
 */
static int load_directory(
	struct cli *cli, struct kymo_ctl **ctl, const char *dir, struct kymo_value *loaded)
{
	struct dirent **names;
	int n = scandir(dir, &names, is_profile, alphasort), n_failed = 0;

	if (n < 0)
		return cli_fail(cli, "failed", "cannot read %s: %s", dir, strerror(errno));
	if (!n && !cli_has(cli, "missing")) {
		free(names);
		return cli_fail(cli, "not-found",
			"%s has no file *.json: 'kymo save -o FILE' writes one", dir);
	}
	cli->printed = true; /* errors of files go to stderr only */
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name) < PATH_MAX &&
			load_file(cli, ctl, path, loaded) != CLI_OK)
			n_failed++;
		free(names[i]);
	}
	free(names);
	cli->printed = false;
	if (n_failed) {
		kymo_value_set_bool(loaded, "ok", false);
		kymo_value_set_string(loaded, "code", "failed");
		kymo_value_set_string(loaded, "error", "some profiles were not loaded completely");
	}
	return n_failed ? CLI_FAILED : CLI_OK;
}

static int run_load(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *loaded = cli_params_new(cli);
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	bool missing = cli_has(cli, "missing");
	char path[PATH_MAX];
	int code = loaded ? find_profile(cli, path) : CLI_FAILED;

	if (!code && missing && cli_has(cli, "force"))
		code = cli_usage(cli, "either --missing or --force, not both");
	if (!code && !is_directory(path) && access(path, R_OK) < 0)
		code = errno == ENOENT
			       ? cli_fail(cli, "not-found",
					 "there is no profile %s: give the file that 'kymo save -o FILE' wrote, or its directory",
					 path)
			       : cli_fail(cli, "failed", "cannot read %s: %s", path,
					 strerror(errno));
	if (code)
		return code;
	kymo_value_set_list(loaded, "sessions");
	code = is_directory(path) ? load_directory(cli, &ctl, path, loaded)
				  : load_file(cli, &ctl, path, loaded);
	if (cli->json && (!code || kymo_value_get(loaded, "error")))
		cli_result(cli, loaded);
	return code;
}

const struct cli_command cmd_load = {
	.name = "load",
	.synopsis = "NAME|FILE|DIR [-i PATH] [-o DIR] [-f | --missing] [--override-name=NAME]",
	.help = "create sessions from a profile that 'kymo save' or 'lttng save' wrote",
	.details =
		"FILE is the JSON that 'kymo save' wrote. With DIR, each *.json in it is loaded; if one is refused, the\n"
		"others are still loaded.\n"
		"FILE can also be the XML that 'lttng save' wrote. It is loaded with its channels, events, contexts,\n"
		"trackers, rotations and loggers. Events of the kernel are left out with a warning. If the profile says\n"
		"that the session was started, the new session is started, too. If any other part is refused, no session\n"
		"is created. For NAME, the command reads .lttng/sessions/NAME.lttng in $LTTNG_HOME or $HOME.\n",
	.options = options,
	.max_args = 1,
	.run = run_load,
};
