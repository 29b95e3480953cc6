/* SPDX-License-Identifier: MIT */
/*
 * doctor: examines everything that recording needs, and says what to do about what is missing. It
 * changes nothing, and works where nothing else does: without daemon, /sys or rights.
 */
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "abi/state.h"
#include "base/clock.h"
#include "base/rundir.h"
#include "base/small-file.h"
#include "base/standard-files.h"
#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/private-rundir.h"
#include "cli/report.h"
#include "kernel/tracefs-root.h"

#define ANSWER_MS     8000
#define FILES_FEW     1024u
#define SPACE_LOW     (1u << 30)
#define SPACE_NONE    (64u << 20)
#define CONTROL_GROUP "tracing"
#define LIBRARY_MAX   (64u << 20) /* bytes */

enum finding {
	FOUND_OK,
	FOUND_WARNING,
	FOUND_FAILURE,
};

struct doctor {
	struct cli *cli;
	struct kymo_value *result;
	unsigned n[FOUND_FAILURE + 1];
	char rundir[PATH_MAX]; /* "": none is possible */
};

static const char *const finding_names[] = {"ok", "warn", "fail"};

/* advice: what to do; "" if nothing. */
static void report_finding(struct doctor *d, const char *check, enum finding f, const char *advice,
	const char *fmt, ...) KY_PRINTF(5, 6);

static void report_finding(struct doctor *d, const char *check, enum finding f, const char *advice,
	const char *fmt, ...)
{
	static const enum cli_style styles[] = {CLI_DIM, CLI_BOLD, CLI_RED};
	struct kymo_value *v = kymo_value_new();
	struct ky_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	ky_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	d->n[f]++;
	if (d->cli->json && v) {
		kymo_value_set_string(v, "check", check);
		kymo_value_set_string(v, "state", finding_names[f]);
		kymo_value_set_string(v, "text", text.data ? text.data : "");
		kymo_value_set_string(v, "advice", advice);
		kymo_value_add(d->result, "checks", v);
	} else {
		printf("%s%-4s%s  %-10s  %s\n", cli_style(d->cli, styles[f]), finding_names[f],
			cli_style(d->cli, CLI_PLAIN), check,
			cli_safe(d->cli, text.data ? text.data : ""));
		if (*advice)
			printf("%18s%s\n", "", cli_safe(d->cli, advice));
	}
	kymo_value_free(v);
	ky_buf_deinit(&text);
}

/* Reads the file's first line; "" if it cannot be read. */
static const char *read_line(const char *path, char *buf, size_t size)
{
	ky_read_text(AT_FDCWD, path, buf, size);
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

/* --- the installation --- */

static void check_program(struct doctor *d, const char *name, int (*locate)(char *buf, size_t size))
{
	char found[PATH_MAX], path[PATH_MAX];

	if (locate(found, sizeof(found)) < 0)
		report_finding(d, "programs", FOUND_FAILURE,
			ky_env("KYMO_LIBEXECDIR") ? "unset KYMO_LIBEXECDIR, or install kymo there"
						  : "install kymo completely",
			"%s was not found beside this program, or in its place of installation",
			name);
	else if (access(found, X_OK) < 0)
		report_finding(d, "programs", FOUND_FAILURE,
			"install kymo again, or change its mode", "%s cannot be executed: %s",
			found, strerror(errno));
	else
		report_finding(d, "programs", FOUND_OK, "", "%s", realpath(found, path) ?: found);
}

/* Copies the version that the library's file says it has (tracer/init.c); "" if none. */
static void library_version(const char *path, char *version, size_t size)
{
	static const char mark[] = KY_LIBRARY_MARK;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *map, *found;

	version[0] = '\0';
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > LIBRARY_MAX)
		return;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return;
	found = memmem(map, (size_t)st.st_size, mark, strlen(mark));
	if (found)
		snprintf(version, size, "%.*s",
			(int)KY_MIN(map + st.st_size - found - (ptrdiff_t)strlen(mark), 63),
			found + strlen(mark));
	munmap(map, (size_t)st.st_size);
}

#define LIBRARY "/libkymo.so.0"

/* Returns true if applications of this architecture can load the file. */
static bool is_loadable(const char *path)
{
	static const unsigned char own[] = {0x7f, 'E', 'L', 'F', sizeof(void *) / 4};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unsigned char head[sizeof(own)];

	return fd >= 0 && read(fd, head, sizeof(head)) == sizeof(head) &&
	       !memcmp(head, own, sizeof(own));
}

/* Finds the library as the dynamic loader does: it looks into LD_LIBRARY_PATH first. */
static bool find_in_variable(char *path, size_t size)
{
	const char *dir = getenv("LD_LIBRARY_PATH");

	while (dir && *dir) {
		int len = (int)strcspn(dir, ":;");

		if (snprintf(path, size, "%.*s%s", len ? len : 1, len ? dir : ".", LIBRARY) <
				(int)size &&
			is_loadable(path))
			return true;
		dir += len + (dir[len] != '\0');
	}
	return false;
}

static void check_library(struct doctor *d)
{
	char path[PATH_MAX + sizeof(LIBRARY)], version[64];
	const char *from = " (LD_LIBRARY_PATH)";

	if (!find_in_variable(path, sizeof(path))) {
		from = "";
		if (cli_locate_tracer_dir(path) < 0) {
			report_finding(d, "library", FOUND_FAILURE,
				"install libkymo, or run ldconfig",
				"libkymo.so.0 was not found: applications run, but cannot be recorded");
			return;
		}
		strcat(path, LIBRARY);
	}
	library_version(path, version, sizeof(version));
	if (strcmp(version, KYMO_VERSION) != 0)
		report_finding(d, "library", FOUND_WARNING,
			"install the same version of kymo and libkymo; features that only one of them has do not work",
			"%s%s has version %s, and this program %s", path, from,
			*version ? version : "unknown", KYMO_VERSION);
	else
		report_finding(d, "library", FOUND_OK, "", "%s%s, version %s", path, from, version);
}

/* Shortens an absolute path to what exists of it: there the first missing directory is made. */
static void keep_existing(char *path)
{
	while (access(path, F_OK) < 0 && strlen(path) > 1) {
		char *slash = strrchr(path, '/');

		slash[slash == path] = '\0';
	}
}

/* Returns 0 if this user can make files in the directory, else why not. */
static int check_writable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

/*
 * Stores how many bytes this user can write where the path is. Stores UINT64_MAX if the file system
 * does not report it: ramfs, tmpfs without a limit, and some of FUSE have no block in all. Returns
 * 0, -ENOSPC if no file can be made, or another error.
 */
static int find_room(const char *path, uint64_t *ret_bytes)
{
	struct statvfs fs;

	if (statvfs(path, &fs) < 0)
		return -errno;
	*ret_bytes = !fs.f_blocks ? UINT64_MAX
				  : (uint64_t)(geteuid() ? fs.f_bavail : fs.f_bfree) * fs.f_frsize;
	return !*ret_bytes || (fs.f_files && !fs.f_ffree) ? -ENOSPC : 0;
}

/* --- run directory and daemon --- */

/* A daemon makes the run directory itself, but not those above it. */
static void check_missing_rundir(struct doctor *d)
{
	char parent[PATH_MAX];
	uint64_t room;
	int r;

	snprintf(parent, sizeof(parent), "%s", d->rundir);
	r = check_writable(dirname(parent));
	if (!r)
		r = find_room(parent, &room);
	if (r)
		report_finding(d, "rundir", FOUND_FAILURE,
			r == -ENOENT   ? "create it, or set KYMO_RUNDIR"
			: r == -ENOSPC ? "free some space there, or set KYMO_RUNDIR"
				       : "set KYMO_RUNDIR to a directory that belongs to you",
			"%s cannot be made in %s: %s", d->rundir, parent, strerror(-r));
	else
		report_finding(
			d, "rundir", FOUND_OK, "", "%s: the first session creates it", d->rundir);
}

/* Returns false if no daemon can use it. */
static bool check_rundir(struct doctor *d)
{
	uint64_t room;
	struct stat st;
	int r = ky_rundir(geteuid(), d->rundir, sizeof(d->rundir) - 32);

	if (r < 0)
		report_finding(d, "rundir", FOUND_FAILURE,
			"set HOME, XDG_RUNTIME_DIR or KYMO_RUNDIR in the environment",
			"there is no run directory for this user");
	else if (strlen(d->rundir) > 90)
		report_finding(d, "rundir", FOUND_FAILURE, "set KYMO_RUNDIR to a shorter path",
			"%s is too long for the address of a socket", d->rundir);
	else if (d->rundir[0] != '/')
		report_finding(d, "rundir", FOUND_FAILURE, "set KYMO_RUNDIR to an absolute path",
			"%s is not an absolute path", d->rundir);
	else if (lstat(d->rundir, &st) < 0 && errno == ENOENT)
		check_missing_rundir(d);
	else if (lstat(d->rundir, &st) < 0)
		report_finding(d, "rundir", FOUND_FAILURE,
			"set KYMO_RUNDIR to a directory that belongs to you", "%s: %s", d->rundir,
			strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		report_finding(d, "rundir", FOUND_FAILURE, "remove it, or set KYMO_RUNDIR",
			"%s is no directory", d->rundir);
	else if (st.st_uid != geteuid())
		report_finding(d, "rundir", FOUND_FAILURE,
			"set KYMO_RUNDIR to a directory that belongs to you",
			"%s belongs to user %u, not to you", d->rundir, (unsigned)st.st_uid);
	else if (st.st_mode & 022)
		report_finding(d, "rundir", FOUND_FAILURE,
			"remove the write permission of others: chmod go-w",
			"others can write to %s (mode %04o): no daemon uses it", d->rundir,
			(unsigned)st.st_mode & 07777);
	else if (check_writable(d->rundir))
		report_finding(d, "rundir", FOUND_FAILURE, "chmod u+rwx, or set KYMO_RUNDIR",
			"no socket can be made in %s: %s", d->rundir,
			strerror(-check_writable(d->rundir)));
	else if (find_room(d->rundir, &room) == -ENOSPC)
		report_finding(d, "rundir", FOUND_FAILURE,
			"free some space there, or set KYMO_RUNDIR",
			"the file system of %s is full: no daemon can start", d->rundir);
	else if (!geteuid() && !ky_env("KYMO_RUNDIR") && (st.st_mode & 0111) != 0111)
		report_finding(d, "rundir", FOUND_FAILURE, "chmod 755",
			"applications of other users cannot reach %s (mode %04o)", d->rundir,
			(unsigned)st.st_mode & 07777);
	else
		report_finding(d, "rundir", FOUND_OK, "", "%s, mode %04o", d->rundir,
			(unsigned)st.st_mode & 07777);
	return r == 0;
}

/* 'kymo record' has a daemon of its own, in a run directory that it makes. */
static void check_private_rundir(struct doctor *d)
{
	const char *parent;
	uint64_t room;

	for (size_t i = 0; (parent = private_rundir_parent(i)); i++)
		if (*parent == '/' && !check_writable(parent) && !find_room(parent, &room))
			return;
	report_finding(d, "rundir", FOUND_FAILURE,
		"make /tmp ('mkdir -m 1777 /tmp'), free some space there, or set TMPDIR",
		"'kymo record' can make no directory in $XDG_RUNTIME_DIR, $TMPDIR or /tmp");
}

/* A stopped daemon continues; one that hangs has to be replaced. */
static void report_silence(struct doctor *d, const char *rundir, int error)
{
	char path[PATH_MAX + 8], number[24], who[64] = "", advice[256];
	int pid;

	snprintf(path, sizeof(path), "%s/%s", rundir, KY_RUN_LOCK);
	pid = ky_read_text(AT_FDCWD, path, number, sizeof(number)) > 0 ? atoi(number) : 0;
	if (pid > 0) {
		snprintf(number, sizeof(number), "%d", pid);
		snprintf(who, sizeof(who), " (pid %d)", pid);
	} else {
		strcpy(number, "PID");
	}
	snprintf(advice, sizeof(advice),
		"if it is stopped, continue it: 'kill -CONT %s'; otherwise kill it: 'kill -9 %s', and a successor takes over its sessions",
		number, number);
	report_finding(d, "daemon", FOUND_FAILURE, advice,
		"the session daemon in %s%s does not answer: %s", rundir, who, strerror(error));
}

/* Reports the sessions of this user that write nothing now. */
static void check_sessions(struct doctor *d, struct kymo_ctl *ctl)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	const struct kymo_value *sessions;

	if (kymo_ctl_call(ctl, "list", NULL, &reply) < 0)
		return;
	sessions = kymo_value_get(reply, "sessions");
	for (size_t i = 0; i < kymo_value_count(sessions); i++) {
		const struct kymo_value *s = kymo_value_at(sessions, i);
		const char *name = cli_member(d->cli, s, "name");
		const char *error = cli_member(d->cli, s, "error");
		uint64_t silent_ms = cli_number(s, "silent_ms");
		char advice[256];

		snprintf(advice, sizeof(advice), "'kymo status %s' says more", name);
		if (*error)
			report_finding(
				d, "session", FOUND_FAILURE, advice, "'%s': %s", name, error);
		else if (silent_ms)
			report_finding(d, "session", FOUND_FAILURE, advice,
				"'%s': its consumer has not worked for %" PRIu64 " s", name,
				silent_ms / 1000);
	}
}

static void check_reply(struct doctor *d, struct kymo_ctl *ctl)
{
	_cleanup_value_ struct kymo_value *hello = NULL;
	const char *version;
	int r;

	kymo_ctl_set_timeout(ctl, ANSWER_MS);
	r = kymo_ctl_call(ctl, "hello", NULL, &hello);
	if (r) {
		report_silence(d, kymo_ctl_rundir(ctl), -r);
		return;
	}
	version = kymo_value_string(kymo_value_get(hello, "version"));
	if (strcmp(version, KYMO_VERSION) != 0)
		report_finding(d, "daemon", FOUND_WARNING,
			"restart it: 'systemctl restart kymo-sessiond', or kill -USR2 and any command; sessions go on",
			"the session daemon in %s has version %s, and this program %s",
			kymo_ctl_rundir(ctl), version, KYMO_VERSION);
	else
		report_finding(d, "daemon", FOUND_OK, "", "pid %llu serves %s, version %s",
			(unsigned long long)kymo_value_u64(kymo_value_get(hello, "pid")),
			kymo_ctl_rundir(ctl), version);
	check_sessions(d, ctl);
}

static void check_daemon(struct doctor *d)
{
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;
	int r = kymo_ctl_open(NULL, &ctl);
	const char *text, *advice;

	if (!r) {
		check_reply(d, ctl);
	} else if (r == -EACCES) {
		text = cli_permission_denied(&advice);
		report_finding(d, "daemon", FOUND_FAILURE, advice, "%s", text);
	} else if (r != -ENOENT && r != -ECONNREFUSED && r != -ENOTDIR) {
		report_finding(d, "daemon", FOUND_FAILURE, "", "cannot connect: %s", strerror(-r));
	} else if (ky_rundir_has_sessions(geteuid())) {
		report_finding(d, "daemon", FOUND_FAILURE,
			"any other command of kymo starts a successor, which takes them over",
			"the session daemon was killed, and has left sessions");
	} else {
		report_finding(d, "daemon", FOUND_OK, "", "none runs: 'kymo create' starts one");
	}
}

static bool is_member(const struct group *gr)
{
	gid_t groups[NGROUPS_MAX];
	int n = getgroups(NGROUPS_MAX, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] == gr->gr_gid)
			return true;
	return getegid() == gr->gr_gid;
}

static bool is_entered(const struct group *gr)
{
	const struct passwd *pw = getpwuid(geteuid());

	for (char **m = gr->gr_mem; pw && *m; m++)
		if (!strcmp(*m, pw->pw_name))
			return true;
	return false;
}

/* The group that controls root's daemon. */
static void check_group(struct doctor *d)
{
	const struct group *gr = getgrnam(CONTROL_GROUP);

	if (!gr)
		report_finding(d, "group", FOUND_WARNING,
			"as root: groupadd --system " CONTROL_GROUP,
			"there is no group '" CONTROL_GROUP
			"': only root can control the system's daemon");
	else if (!geteuid() || is_member(gr))
		report_finding(d, "group", FOUND_OK, "", "'" CONTROL_GROUP "' exists%s",
			geteuid() ? ", and you are a member" : "");
	else if (is_entered(gr))
		report_finding(d, "group", FOUND_WARNING,
			"log in again, or 'newgrp " CONTROL_GROUP "'",
			"you were made a member of '" CONTROL_GROUP "' after you logged in");
	else
		report_finding(d, "group", FOUND_OK, "",
			"'" CONTROL_GROUP
			"' exists; you are no member, so you use a daemon of your own");
}

/* --- the machine --- */

/* In the C library since glibc 2.35. */
extern const unsigned int __rseq_size __attribute__((weak));

static void check_rseq(struct doctor *d)
{
	static const char advice[] =
		"use glibc 2.35 or later and Linux 4.18 or later, and do not turn rseq off (GLIBC_TUNABLES)";

	if (sizeof(void *) == 8 && &__rseq_size && __rseq_size)
		report_finding(d, "rseq", FOUND_OK, "", "restartable sequences work");
	else
		report_finding(d, "rseq", FOUND_WARNING, advice,
			"no restartable sequences: events are slower, and each thread has its own buffer");
}

static void check_clock(struct doctor *d)
{
	char source[64];

	if (ky_clock_choose() != KY_CLOCK_MONOTONIC) {
		report_finding(d, "clock", FOUND_OK, "", "the CPU's counter");
		return;
	}
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		sizeof(source));
	report_finding(d, "clock", FOUND_WARNING,
		"if the counter is reliable: KYMO_CLOCK=tsc for the session daemon",
		"CLOCK_MONOTONIC, which takes longer to read: %s%s",
		*source ? "the kernel's clock is "
			: "/sys is missing, so the kernel's clock is not known",
		source);
}

static void check_files(struct doctor *d)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return;
	if (lim.rlim_max < FILES_FEW)
		report_finding(d, "limits", FOUND_WARNING,
			"raise it: 'ulimit -Hn 1048576', LimitNOFILE= of a service",
			"a daemon can have %llu open files, which is few: an application takes two, a stream one",
			(unsigned long long)lim.rlim_max);
	else
		report_finding(d, "limits", FOUND_OK, "", "up to %llu open files",
			(unsigned long long)lim.rlim_max);
	if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_max != RLIM_INFINITY)
		report_finding(d, "limits", FOUND_WARNING, "raise it: 'ulimit -f unlimited'",
			"files and buffers can have at most %llu bytes",
			(unsigned long long)lim.rlim_max);
}

static void check_memory(struct doctor *d)
{
	int fd = memfd_create("kymo-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		report_finding(d, "memory", FOUND_FAILURE,
			"let the container's filter of system calls pass memfd_create",
			"shared memory cannot be created: %s", strerror(errno));
	else
		report_finding(d, "memory", FOUND_OK, "", "shared memory can be created");
	ky_close(fd);
}

static void check_confinement(struct doctor *d)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi > 0)
		report_finding(
			d, "landlock", FOUND_OK, "", "consumers can write to their traces only");
	else
		report_finding(d, "landlock", FOUND_WARNING,
			"use Linux 5.13 or later with Landlock (lsm= in the kernel's command line)",
			"the kernel has no Landlock here: consumers are not confined to their traces");
}

static void check_counters(struct doctor *d)
{
	char level[32];

	read_line("/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
	if (!*level && access("/proc/sys/kernel", F_OK) < 0)
		report_finding(d, "counters", FOUND_WARNING, "",
			"/proc/sys is missing: whether contexts 'perf:...' count is not known");
	else if (!*level)
		report_finding(d, "counters", FOUND_WARNING, "",
			"the kernel has no performance counters here: contexts 'perf:...' count nothing");
	else if (geteuid() && atoi(level) > 2)
		report_finding(d, "counters", FOUND_WARNING,
			"as root: sysctl kernel.perf_event_paranoid=2",
			"users may count nothing (perf_event_paranoid is %s): contexts 'perf:...' do not work",
			level);
	else
		report_finding(d, "counters", FOUND_OK, "", "perf_event_paranoid is %s", level);
}

static void check_kernel(struct doctor *d)
{
	struct ky_tracefs_refusal refusal;
	int fd = ky_tracefs_open(&refusal);

	if (fd >= 0) {
		close(fd);
		report_finding(d, "kernel", FOUND_OK, "", "events of the kernel can be recorded");
		return;
	}
	report_finding(d, "kernel", FOUND_WARNING, refusal.advice, "cannot be recorded: %s",
		refusal.problem);
}

static void check_space(struct doctor *d)
{
	char traces[PATH_MAX], path[PATH_MAX], size[32];
	uint64_t space;
	int r = cli_locate_traces(traces, sizeof(traces));

	if (r < 0) {
		report_finding(d, "traces", FOUND_WARNING,
			"set HOME or KYMO_HOME, or give --output",
			"there is no default place for traces");
		return;
	}
	strcpy(path, traces);
	keep_existing(path);
	r = check_writable(path);
	if (!r)
		r = find_room(path, &space);
	if (r) {
		report_finding(d, "traces", FOUND_FAILURE,
			r == -ENOSPC ? "free some space, set KYMO_HOME, or give --output"
				     : "set KYMO_HOME, or give --output",
			"traces cannot be written to %s: %s", traces, strerror(-r));
		return;
	}
	cli_format_size(size, sizeof(size), space);
	if (space == UINT64_MAX)
		report_finding(d, "traces", FOUND_OK, "",
			"%s: its file system does not report how much is free", traces);
	else if (space < SPACE_LOW)
		report_finding(d, "traces", space < SPACE_NONE ? FOUND_FAILURE : FOUND_WARNING,
			"free some space, set KYMO_HOME, or give --output", "%s: only %s are free",
			traces, size);
	else
		report_finding(d, "traces", FOUND_OK, "", "%s: %s are free", traces, size);
}

static void check_environment(struct doctor *d)
{
	const char *advice, *missing = ky_missing_file(&advice);

	if (missing)
		report_finding(d, "environment", FOUND_FAILURE, advice, "%s", missing);
	if (ky_switch_is_on("KYMO_OFF"))
		report_finding(d, "environment", FOUND_WARNING, "unset KYMO_OFF",
			"KYMO_OFF is set: applications that are started here are not recorded");
	if (ky_env("KYMO_STANDALONE"))
		report_finding(d, "environment", FOUND_WARNING, "unset KYMO_STANDALONE",
			"KYMO_STANDALONE is set: applications that are started here record without a session");
	if (!access("/run/.containerenv", F_OK) || !access("/.dockerenv", F_OK))
		report_finding(d, "container", FOUND_OK, "",
			"this is a container: a daemon outside records its applications if the run directory is shared");
}

static int print_summary(struct doctor *d)
{
	bool failed = d->n[FOUND_FAILURE];

	if (d->cli->json) {
		kymo_value_set_u64(d->result, "failures", d->n[FOUND_FAILURE]);
		kymo_value_set_u64(d->result, "warnings", d->n[FOUND_WARNING]);
		cli_result(d->cli, d->result);
	} else {
		printf("%u check%s: %u failed, %u warning%s\n",
			d->n[FOUND_OK] + d->n[FOUND_WARNING] + d->n[FOUND_FAILURE],
			d->n[FOUND_OK] + d->n[FOUND_WARNING] + d->n[FOUND_FAILURE] == 1 ? "" : "s",
			d->n[FOUND_FAILURE], d->n[FOUND_WARNING],
			d->n[FOUND_WARNING] == 1 ? "" : "s");
	}
	return failed ? CLI_FAILED : CLI_OK;
}

static int run_doctor(struct cli *cli)
{
	struct doctor d = {.cli = cli, .result = kymo_value_new()};
	int code;

	if (!d.result)
		return cli_fail(cli, "failed", "no memory");
	kymo_value_set_list(d.result, "checks");
	check_program(&d, "kymo-sessiond", cli_locate_sessiond);
	check_program(&d, "kymo-consumerd", cli_locate_consumerd);
	check_library(&d);
	if (check_rundir(&d))
		check_daemon(&d);
	check_private_rundir(&d);
	check_group(&d);
	check_rseq(&d);
	check_clock(&d);
	check_files(&d);
	check_memory(&d);
	check_confinement(&d);
	check_counters(&d);
	check_kernel(&d);
	check_space(&d);
	check_environment(&d);
	code = print_summary(&d);
	kymo_value_free(d.result);
	return code;
}

const struct cli_command cmd_doctor = {
	.name = "doctor",
	.synopsis = "",
	.help = "check everything that recording needs, and say what to do",
	.details = "Run it first if nothing is recorded. It changes nothing.\n",
	.exit_codes = "0 nothing prevents recording, 1 something does, 2 wrong usage",
	.run = run_doctor,
};
