/* SPDX-License-Identifier: MIT */
#include "cli/locate.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>

#include "base/own-dir.h"
#include "base/paths.h"

#define OUTPUT_TRIES 1000

static int format_path(char *buf, size_t size, const char *fmt, ...) KY_PRINTF(3, 4);
static int format_path(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	if (r < 0)
		return -EINVAL;
	return (size_t)r < size ? 0 : -ENAMETOOLONG;
}

/*
 * Finds DIR/file, where DIR is first[0], first[1], ... relative to the executable, or at last the
 * absolute `installed`; buf gets the path.
 */
static int find_program(char *buf, size_t size, const char *const *relative, const char *installed,
	const char *file)
{
	char own[PATH_MAX];
	int r = ky_own_dir(own);

	for (; *relative && !r; relative++) {
		r = format_path(buf, size, "%s/%s/%s", own, *relative, file);
		if (!r && access(buf, R_OK) == 0)
			return 0;
	}
	r = format_path(buf, size, "%s/%s", installed, file);
	if (r < 0)
		return r;
	return access(buf, R_OK) == 0 ? 0 : -errno;
}

int cli_locate_sessiond(char *buf, size_t size)
{
	static const char *const relative[] = {".", "../sessiond", NULL};

	return find_program(buf, size, relative, KYMO_BINDIR, "kymo-sessiond");
}

static const char *libexec_dir(void)
{
	return ky_env("KYMO_LIBEXECDIR") ?: KYMO_LIBEXECDIR;
}

int cli_locate_consumerd(char *buf, size_t size)
{
	static const char *const relative[] = {".", "../consumerd", "../libexec/kymo", NULL};
	static const char *const none[] = {NULL};

	/* The session daemon looks in no other directory, either. */
	return find_program(buf, size, ky_env("KYMO_LIBEXECDIR") ? none : relative, libexec_dir(),
		"kymo-consumerd");
}

int cli_locate_web(char *buf, size_t size)
{
	static const char *const relative[] = {"../web", "../libexec/kymo", NULL};

	return find_program(buf, size, relative, libexec_dir(), "kymo-web.so");
}

int cli_locate_fleet(char *buf, size_t size)
{
	static const char *const relative[] = {"../fleet", "../libexec/kymo", NULL};

	return find_program(buf, size, relative, libexec_dir(), "kymo-fleet");
}

int cli_locate_preload(char *buf, size_t size, const char *file)
{
	static const char *const relative[] = {"../preload", "../" KYMO_LIBDIR_NAME, NULL};

	return find_program(buf, size, relative, KYMO_LIBDIR, file);
}

/* The absolute path of the directory that has the file; buf has PATH_MAX bytes. */
static int find_dir(char *buf, const char *const *relative, const char *installed, const char *file)
{
	char path[PATH_MAX];
	int r = find_program(path, sizeof(path), relative, installed, file);

	if (r < 0)
		return r;
	*strrchr(path, '/') = '\0';
	return realpath(path, buf) ? 0 : -errno;
}

int cli_locate_tracer_dir(char *buf)
{
	static const char *const relative[] = {"../tracer", "../" KYMO_LIBDIR_NAME, NULL};

	return find_dir(buf, relative, KYMO_LIBDIR, "libkymo.so.0");
}

int cli_locate_lttng_dir(char *buf)
{
	static const char *const relative[] = {
		"../lttng", "../" KYMO_LIBDIR_NAME "/kymo-lttng/run", NULL};

	return find_dir(buf, relative, KYMO_LIBDIR "/kymo-lttng/run", "liblttng-ust.so.1");
}

bool cli_is_system_libdir(const char *dir)
{
	static const char *const standard[] = {
		"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"};
	size_t len;

	for (size_t i = 0; i < KY_ARRAY_SIZE(standard); i++) {
		len = strlen(standard[i]);
		/* itself, or the directory of an architecture in it */
		if (!strncmp(dir, standard[i], len) &&
			(!dir[len] || (dir[len] == '/' && !strchr(dir + len + 1, '/'))))
			return true;
	}
	return false;
}

int cli_locate_traces(char *buf, size_t size)
{
	const char *own = ky_env("KYMO_HOME"), *home = ky_env("HOME");
	char path[PATH_MAX];
	int r;

	if (own)
		return cli_absolute_path(buf, size, own);
	if (!home)
		return -ENOENT;
	r = format_path(path, sizeof(path), "%s/kymo-traces", home);
	return r ? r : cli_absolute_path(buf, size, path);
}

void cli_format_date(char *buf, size_t size)
{
	time_t now = time(NULL);
	struct tm tm = {0};

	localtime_r(&now, &tm);
	strftime(buf, size, "%Y%m%d-%H%M%S", &tm);
}

int cli_make_dirs(const char *path)
{
	char part[PATH_MAX];

	for (const char *p = path; *p; p++) {
		if (p[1] != '/' && p[1])
			continue;
		memcpy(part, path, (size_t)(p - path) + 1);
		part[p - path + 1] = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

int cli_make_output(char *buf, size_t size, const char *session, bool dated)
{
	char traces[PATH_MAX], date[32] = "", number[16] = "";
	int r = cli_locate_traces(traces, sizeof(traces));

	if (!dated)
		cli_format_date(date, sizeof(date));
	if (!r)
		r = cli_make_dirs(traces);
	for (unsigned i = 0; i < OUTPUT_TRIES && !r; i++) {
		if (i)
			snprintf(number, sizeof(number), "-%u", i);
		r = format_path(
			buf, size, "%s/%s%s%s%s", traces, session, dated ? "" : "-", date, number);
		if (!r && mkdir(buf, 0750) == 0)
			return 0;
		if (!r && errno != EEXIST)
			r = -errno;
	}
	return r ? r : -EEXIST;
}

int cli_absolute_path(char *buf, size_t size, const char *path)
{
	char joined[2 * PATH_MAX], cwd[PATH_MAX];
	size_t n = 0, len;
	int r;

	if (*path == '/')
		r = format_path(joined, sizeof(joined), "%s", path);
	else if (getcwd(cwd, sizeof(cwd)))
		r = format_path(joined, sizeof(joined), "%s/%s", cwd, path);
	else
		r = -errno;
	for (const char *p = joined; !r && *p; p += len) {
		p += strspn(p, "/");
		len = strcspn(p, "/");
		if (!len || (len == 1 && *p == '.'))
			continue;
		if (n + len + 2 > size)
			return -ENAMETOOLONG;
		buf[n++] = '/';
		memcpy(buf + n, p, len);
		n += len;
	}
	if (!r && !n)
		buf[n++] = '/';
	buf[n] = '\0';
	return r;
}

bool cli_may_be_session(const char *name)
{
	struct stat st;

	if (strchr(name, '/'))
		return false;
	return stat(name, &st) < 0 ? errno == ENOENT : !S_ISDIR(st.st_mode);
}
