/* SPDX-License-Identifier: MIT */
#include "cli/trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "cli/locate.h"
#include "ship/files.h"

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

/* Finds the path of the directory below `in` that was changed last. -ENOENT: there is none. */
static int find_newest(char *buf, size_t size, const char *in)
{
	struct timespec newest = {.tv_sec = INT64_MIN};
	DIR *d = opendir(in);
	struct dirent *e;
	int r = -ENOENT;

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(st.st_mode) || !is_newer(&st.st_mtim, &newest) ||
			!has_entries(dirfd(d), e->d_name))
			continue;
		newest = st.st_mtim;
		r = snprintf(buf, size, "%s/%s", in, e->d_name) < (int)size ? 0 : -ENAMETOOLONG;
	}
	closedir(d);
	return r;
}

static int find_default(struct cli *cli, char *path)
{
	char traces[PATH_MAX];
	int r = cli_locate_traces(traces, sizeof(traces));

	if (r < 0)
		return cli_fail(cli, "not-found",
			"no trace is named, and neither KYMO_HOME nor HOME, where traces would be, is set");
	r = find_newest(path, PATH_MAX, traces);
	if (r == -ENOENT)
		return cli_fail(cli, "not-found",
			"there is no trace in %s: name one, or make one with 'kymo record'",
			traces);
	if (r < 0)
		return cli_fail(
			cli, "failed", "cannot look for traces: %s: %s", traces, strerror(-r));
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

int cli_trace_find(struct cli *cli, char **named, size_t n, char *found,
	const char *const **ret_paths, size_t *ret_n)
{
	static const char *newest[1];
	int r = n ? CLI_OK : find_default(cli, found);

	newest[0] = found;
	*ret_paths = n ? (const char *const *)named : newest;
	*ret_n = n ? n : 1;
	for (size_t i = 0; !r && i < *ret_n; i++)
		warn_of_spool(cli, (*ret_paths)[i]);
	return r;
}

int cli_trace_open(struct cli *cli, const struct ky_trace_reader_options *options, char *ret_path,
	struct ky_trace_reader **ret_reader)
{
	char found[PATH_MAX], why[PATH_MAX + 256];
	const char *const *paths;
	size_t n;
	int r = cli_trace_find(cli, cli->args.pos, cli->args.n_pos, found, &paths, &n);

	if (r)
		return r;
	r = ky_trace_reader_open(ret_reader, paths, n, options, why, sizeof(why));
	if (r < 0)
		return cli_fail(cli, cli_trace_code(r), "%s", why);
	if (ret_path)
		snprintf(ret_path, PATH_MAX, "%s", paths[0]);
	return CLI_OK;
}
