/* SPDX-License-Identifier: MIT */
#include "cli/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/text.h"
#include "ship/files.h"

#define NEAR_MAX	   256 /* names that a suggestion is chosen from */
#define FIRST_EVENT_NAP_MS 100
#define CURRENT_TIMEOUT_MS 2000

static bool is_newer(const struct timespec *x, const struct timespec *y)
{
	return x->tv_sec != y->tv_sec ? x->tv_sec > y->tv_sec : x->tv_nsec > y->tv_nsec;
}

/* Returns true if the directory has entries; an empty one is not a trace yet. */
static bool has_entries(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e = NULL;

	while (d && (e = readdir(d)) && e->d_name[0] == '.')
		;
	if (d)
		closedir(d);
	else
		ky_close(fd);
	return e;
}

/* Returns true if a trace's name is that of a session and a date, as cli_make_output makes it. */
static bool is_of_session(const char *trace, const char *session)
{
	const char *date = trace + strlen(session);

	if (strncmp(trace, session, strlen(session)) != 0)
		return false;
	return !*date || (*date == '-' && strspn(date + 1, "0123456789") == 8 && date[9] == '-' &&
				 strspn(date + 10, "0123456789") == 6);
}

/*
 * Finds the path of the directory below `in` that was changed last; of those of a session, if it is
 * not NULL. -ENOENT: there is none. ret_empty: the name of an empty one that is newer, or ""; may
 * be NULL.
 */
static int find_newest(
	char *buf, size_t size, const char *in, const char *session, char ret_empty[NAME_MAX + 1])
{
	struct timespec newest = {.tv_sec = INT64_MIN}, newest_empty = newest;
	char empty[NAME_MAX + 1] = "";
	DIR *d = opendir(in);
	struct dirent *e;
	int r = -ENOENT;

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || (session && !is_of_session(e->d_name, session)) ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(st.st_mode) || !is_newer(&st.st_mtim, &newest))
			continue;
		if (!has_entries(dirfd(d), e->d_name)) {
			if (is_newer(&st.st_mtim, &newest_empty)) {
				newest_empty = st.st_mtim;
				snprintf(empty, sizeof(empty), "%s", e->d_name);
			}
			continue;
		}
		newest = st.st_mtim;
		r = snprintf(buf, size, "%s/%s", in, e->d_name) < (int)size ? 0 : -ENAMETOOLONG;
	}
	closedir(d);
	if (ret_empty)
		strcpy(ret_empty, is_newer(&newest_empty, &newest) ? empty : "");
	return r;
}

/*
 * The current session may write to any place: returns true, and stores its trace, if that is newer
 * than the one at path, or if there is none (found < 0). A daemon that does not answer soon has no
 * say.
 */
static bool prefer_current(char path[PATH_MAX], int found)
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new(), *reply = NULL;
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	struct stat own, other;
	const char *output;

	if (!params || kymo_ctl_open(NULL, &ctl) < 0)
		return false;
	kymo_ctl_set_timeout(ctl, CURRENT_TIMEOUT_MS);
	if (kymo_ctl_call(ctl, "status", params, &reply) < 0 || !kymo_reply_ok(reply))
		return false;
	output = kymo_value_string(kymo_value_get(kymo_value_get(reply, "session"), "output"));
	if (!*output || !has_entries(AT_FDCWD, output) || stat(output, &own) < 0 ||
		(found >= 0 && !stat(path, &other) && !is_newer(&own.st_mtim, &other.st_mtim)))
		return false;
	snprintf(path, PATH_MAX, "%s", output);
	return true;
}

static int find_default(struct cli *cli, char path[PATH_MAX])
{
	char traces[PATH_MAX], empty[NAME_MAX + 1];
	int r = cli_locate_traces(traces, sizeof(traces));

	if (r < 0)
		return cli_fail(cli, "not-found",
			"no trace is named, and neither KYMO_HOME nor HOME, where traces would be, is set");
	r = find_newest(path, PATH_MAX, traces, NULL, empty);
	if (prefer_current(path, r))
		return CLI_OK;
	if (r == -ENOENT)
		return cli_fail(cli, "not-found",
			"there is no trace in %s: name one, or make one with 'kymo record'",
			traces);
	if (r < 0)
		return cli_fail(
			cli, "failed", "cannot look for traces: %s: %s", traces, strerror(-r));
	if (*empty)
		cli_warn(cli, "%s is newer, but nothing was recorded there: this is %s",
			cli_safe(cli, empty), cli_safe(cli, path));
	return CLI_OK;
}

const char *cli_trace_code(int error)
{
	if (error == -ENOENT || error == -ENOTDIR)
		return "not-found";
	return error == -EACCES || error == -EPERM ? "permission" : "failed";
}

static void warn_of_spool(struct cli *cli, const char *path)
{
	char mark[PATH_MAX];

	snprintf(mark, sizeof(mark), "%.*s/" FILES_SPOOL, PATH_MAX - 16, path);
	if (!access(mark, F_OK))
		cli_warn(cli,
			"%s is a spool of 'kymo ship': events that were sent are no longer here",
			cli_safe(cli, path));
}

/* Stores the directory that a session writes. Returns an exit code. */
static int find_output(
	struct cli *cli, const struct kymo_value *session, bool may_be_empty, char path[PATH_MAX])
{
	bool has_no_trace = kymo_value_bool(kymo_value_get(session, "snapshot"));
	const char *name = kymo_value_string(kymo_value_get(session, "name"));

	snprintf(path, PATH_MAX, "%s", kymo_value_string(kymo_value_get(session, "output")));
	if (*path && (has_entries(AT_FDCWD, path) || (may_be_empty && !has_no_trace)))
		return CLI_OK;
	if (!*path || has_no_trace)
		return cli_fail(cli, "not-found",
			"session '%s' keeps its events in memory: make a snapshot of it ('kymo snapshot record')",
			name);
	return cli_fail(cli, "not-found", "session '%s' has recorded no event yet", name);
}

/* Stores the path of a directory that has almost this path. Returns whether there is one. */
static bool find_near(const char *wanted, char path[PATH_MAX])
{
	const char *slash = strrchr(wanted, '/'), *base = slash ? slash + 1 : wanted, *near;
	const char *names[NEAR_MAX + 1] = {NULL};
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(path, PATH_MAX, "%.*s", (int)(base - wanted), wanted);
	d = opendir(*path ? path : ".");
	while (d && n < NEAR_MAX && (e = readdir(d)))
		if (e->d_name[0] != '.' && has_entries(dirfd(d), e->d_name))
			n += !!(names[n] = strdup(e->d_name));
	near = cli_nearest(base, names);
	if (near)
		snprintf(path, PATH_MAX, "%.*s%s", (int)(base - wanted), wanted, near);
	while (n)
		free((char *)names[--n]);
	if (d)
		closedir(d);
	return near;
}

static int no_trace_but(struct cli *cli, const char *name, const char *near)
{
	return cli_fail(cli, "not-found", "there is no trace '%s': did you mean '%s'?", name, near);
}

/* Returns the option that takes a name of this form in the place of a trace, or NULL. */
static const char *option_for(const struct cli *cli, const char *name)
{
	static const char *const options[] = {"span", "event"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(options) && strchr(name, ':'); i++)
		for (const struct cli_option *o = cli->command->options; o && o->name; o++)
			if (!strcmp(o->name, options[i]))
				return options[i];
	return NULL;
}

/* Stores the path that a name means. Returns an exit code. */
static int find_named(struct cli *cli, const char *name, bool may_be_empty, char path[PATH_MAX])
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new(), *reply = NULL;
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	char traces[PATH_MAX], near[PATH_MAX];
	const char *option, *advice;
	bool is_there;
	int r = -ENOENT;

	snprintf(path, PATH_MAX, "%s", name);
	is_there = access(name, F_OK) == 0 || errno != ENOENT;
	if (!is_there && (!strncmp(name, "net://", 6) || !strncmp(name, "net6://", 7)))
		return cli_usage(cli,
			"'%s' is an address: 'babeltrace2 --input-format=lttng-live' reads it, and this command the directory of a trace",
			name);
	if (!cli_may_be_session(name))
		return !is_there && find_near(name, near) ? no_trace_but(cli, name, near) : CLI_OK;
	option = is_there ? NULL : option_for(cli, name);
	if (option)
		return cli_usage(cli,
			"there is no trace '%s': write --%s=%s for the %s of that name", name,
			option, name, option);
	if (params && ky_name_valid(name))
		r = kymo_ctl_open(NULL, &ctl);
	if (ctl) {
		kymo_value_set_string(params, "session", name);
		kymo_ctl_call(ctl, "status", params, &reply);
	}
	if (reply && kymo_reply_ok(reply))
		return find_output(cli, kymo_value_get(reply, "session"), may_be_empty, path);
	if (!cli_locate_traces(traces, sizeof(traces)) &&
		!find_newest(path, PATH_MAX, traces, name, NULL))
		return CLI_OK;
	if (is_there)
		return CLI_OK;
	if (find_near(name, near))
		return no_trace_but(cli, name, near);
	if (!ky_name_valid(name))
		return cli_fail(cli, "not-found", "there is no trace '%s' here", name);
	if (r == -EACCES)
		return cli_fail(cli, "not-found", "there is no trace '%s' here, and %s", name,
			cli_permission_denied(&advice));
	if (!reply)
		return cli_no_trace_or_session(cli, name);
	return cli_fail(
		cli, "not-found", "no trace '%s' is here, and %s", name, kymo_reply_error(reply));
}

static int add_path(struct cli *cli, struct cli_traces *t, const char *path)
{
	t->paths[t->n] = strdup(path);
	if (!t->paths[t->n])
		return cli_fail(cli, "failed", "no memory");
	warn_of_spool(cli, t->paths[t->n++]);
	return CLI_OK;
}

int cli_traces_find(struct cli *cli, const char *const *named, size_t n, struct cli_traces *ret)
{
	char path[PATH_MAX];
	int r = CLI_OK;

	ret->paths = calloc(n + 1, sizeof(*ret->paths));
	if (!ret->paths)
		return cli_fail(cli, "failed", "no memory");
	for (size_t i = 0; i < n && !r; i++) {
		r = find_named(cli, named[i], ret->may_be_empty, path);
		r = r ? r : add_path(cli, ret, path);
	}
	if (n)
		return r;
	r = find_default(cli, path);
	return r ? r : add_path(cli, ret, path);
}

void cli_traces_deinit(struct cli_traces *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->paths[i]);
	free(t->paths);
}

bool cli_is_below(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

bool cli_trace_has(const struct cli *cli, const char *output)
{
	char copy[PATH_MAX], parent[PATH_MAX], trace[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", output);
	if (!realpath(dirname(copy), parent))
		return false;
	for (size_t i = 0; i < cli->args.n_pos; i++)
		if (realpath(cli->args.pos[i], trace) && cli_is_below(parent, trace))
			return true;
	return false;
}

int cli_trace_open(struct cli *cli, const struct ky_trace_reader_options *options, char *ret_path,
	struct ky_trace_reader **ret_reader)
{
	_cleanup_traces_ struct cli_traces t = {.may_be_empty = options->is_growing};
	const struct timespec nap = {0, FIRST_EVENT_NAP_MS * 1000000L};
	char why[PATH_MAX + 256];
	int r = cli_traces_find(cli, (const char *const *)cli->args.pos, cli->args.n_pos, &t);

	if (r)
		return r;
	if (ret_path)
		snprintf(ret_path, PATH_MAX, "%s", t.paths[0]);
	for (;; nanosleep(&nap, NULL)) {
		bool is_recorded = t.n == 1 && ky_trace_dir_is_recorded(t.paths[0]);

		r = ky_trace_reader_open(
			ret_reader, (const char *const *)t.paths, t.n, options, why, sizeof(why));
		if ((r != -ENOENT && r != -ENODATA) || !options->is_growing || !is_recorded)
			break;
	}
	return r < 0 ? cli_fail(cli, cli_trace_code(r), "%s", why) : CLI_OK;
}
