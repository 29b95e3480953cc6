/* SPDX-License-Identifier: MIT */
/* load: makes sessions from a profile that `lttng save` wrote. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "cli/daemon.h"
#include "cli/lttng-profile.h"
#include "cli/params.h"

#define PROFILE_MAX (4u << 20) /* bytes */

static const struct cli_option options[] = {
	{"input-path", 'i', "PATH", "the profile, or its directory (default ~/.lttng/sessions)"},
	{"output", 'o', "DIR", "directory of the trace, not the profile's; must be new or empty"},
	{"override-name", 0, "NAME", "name the session so"},
	{"force", 'f', NULL, "replace a session of this name"},
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
	const char *home = getenv("LTTNG_HOME") ? getenv("LTTNG_HOME") : getenv("HOME");
	char own[PATH_MAX];
	int n;

	if (dir && !is_directory(dir))
		n = snprintf(path, PATH_MAX, "%s", dir);
	else if (!name)
		return cli_usage(cli, "name a session, or a profile that 'lttng save' wrote");
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

static struct xml *read_profile(struct cli *cli, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *text = malloc(PROFILE_MAX + 1);
	struct xml *root = NULL;
	size_t len = 0;
	ssize_t n = 1;

	while (fd >= 0 && text && len <= PROFILE_MAX && n > 0) {
		n = read(fd, text + len, PROFILE_MAX + 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || n < 0)
		cli_fail(cli, errno == ENOENT ? "not-found" : "failed", "%s: %s", path,
			strerror(errno));
	else if (text && len <= PROFILE_MAX)
		root = xml_parse(text, len);
	if (fd >= 0 && n >= 0 && (!root || !lttng_profile_first(root))) {
		cli_fail(cli, "failed", "%s is no profile of LTTng sessions", path);
		xml_free(root);
		return NULL;
	}
	return root;
}

/* Destroys the session of this name, if there is one. */
static int destroy_old(struct cli *cli, struct kymo_ctl *ctl, const char *name)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL, *all = NULL;
	const struct kymo_value *sessions;
	int code = params ? cli_call(cli, ctl, "list", params, &all) : CLI_FAILED;

	sessions = kymo_value_get(all, "sessions");
	for (size_t i = 0; i < kymo_value_count(sessions) && !code; i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);

		if (strcmp(kymo_value_string(kymo_value_get(s, "name")), name) != 0)
			continue;
		kymo_value_set_string(params, "session", name);
		code = cli_call(cli, ctl, "destroy", params, &reply);
		break;
	}
	return code;
}

static int load(
	struct cli *cli, struct kymo_ctl *ctl, const struct xml *session, struct kymo_value *loaded)
{
	const char *name = cli_get(cli, "override-name");
	int code = CLI_OK;

	name = name ? name : xml_text(session, "name");
	if (cli_has(cli, "force"))
		code = destroy_old(cli, ctl, name);
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

static int run(struct cli *cli)
{
	_cleanup_value_ struct kymo_value *loaded = cli_params_new(cli);
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	const struct xml *session;
	struct xml *root = NULL;
	char path[PATH_MAX];
	int code = loaded ? find_profile(cli, path) : CLI_FAILED;

	if (code)
		return code;
	root = read_profile(cli, path);
	if (!root)
		return CLI_FAILED;
	session = lttng_profile_first(root);
	if (xml_next(session) && (cli_has(cli, "override-name") || cli_has(cli, "output")))
		code = cli_usage(
			cli, "%s has several sessions: they keep their names and outputs", path);
	if (!code)
		code = cli_connect_or_start(cli, &ctl);
	for (; session && !code; session = xml_next(session))
		code = load(cli, ctl, session, loaded);
	xml_free(root);
	if (!code && cli->json)
		cli_result(cli, loaded);
	return code;
}

const struct cli_command cmd_load = {
	.name = "load",
	.synopsis = "NAME|FILE [-i PATH] [-o DIR] [-f] [--override-name=NAME]",
	.help = "make a session from a profile that 'lttng save' wrote",
	.details =
		"Channels, events, contexts, trackers, rotations, loggers of agents: all that the profile has, except\n"
		"events of the kernel, which are left out with a warning. A session that was started is started. If a\n"
		"part is refused, nothing is left. NAME is searched as NAME.lttng in ~/.lttng/sessions ($LTTNG_HOME).\n",
	.options = options,
	.max_args = 1,
	.run = run,
};
