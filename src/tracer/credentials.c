/* SPDX-License-Identifier: MIT */
/*
 * The capabilities of libkymo's threads.
 *
 * setuid(3) and similar functions let each thread of the process make the system call, by signal 33
 * of the C library, which ends the program if one thread gets another result than the others. But
 * capabilities, and PR_SET_KEEPCAPS, belong to a single thread. So a program of one thread that
 * changes its own before such a call would be ended because of our threads: setpriv(1) does so.
 * Nor must our threads keep what it has given up.
 *
 * So before one of our threads makes the call, it takes main's capabilities, of which it has at
 * least all. It keeps them when the call gives up root, as main may do by PR_SET_KEEPCAPS, until
 * main has made the call too; then it takes main's again.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/small-file.h"
#include "base/sys.h"
#include "tracer/tracer.h"

#define SETXID	   33
#define NAP_NS	   50000
#define NAPS	   200000 /* for main, which may wait for a processor */
#define USERS_SIZE 64

struct capabilities {
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

/* The kernel's: the C library lets nobody change the action of its signal. */
struct action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask[8 / sizeof(long)];
};

static void (*setxid_of_libc)(int, siginfo_t *, void *) KY_WRITTEN_EARLY;
static __thread KY_THREAD_TLS bool follows;

/* pid: of a process's first thread; 0: of the caller. Returns false if it cannot be had. */
static bool get_capabilities(pid_t pid, struct capabilities *ret)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, pid};

	memset(ret, 0, sizeof(*ret));
	return ky_call(SYS_capget, &head, ret->data) == 0;
}

static bool are_equal(const struct capabilities *a, const struct capabilities *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Takes main's, and returns them. */
static bool take_from_main(struct capabilities *ret)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct capabilities own;

	if (!get_capabilities(ky_process_number(), ret) || !get_capabilities(0, &own))
		return false;
	return are_equal(ret, &own) || ky_call(SYS_capset, &head, ret->data) == 0;
}

/*
 * Reads the thread's users: real, effective, saved, and that of file accesses. Returns false if the
 * thread has ended (main may, before others do), or without /proc.
 */
static bool get_users(pid_t thread, char ret[USERS_SIZE])
{
	char path[64], text[1024];
	const char *line;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
	ky_read_text(AT_FDCWD, path, text, sizeof(text));
	line = strstr(text, "\nUid:");
	if (!line || strstr(text, "\nState:\tZ") || strstr(text, "\nState:\tX"))
		return false;
	snprintf(ret, USERS_SIZE, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
	return true;
}

/* Waits until main has made the call that has changed our users and capabilities. */
static bool await_main(void)
{
	const struct timespec nap = {0, NAP_NS};
	char ours[USERS_SIZE], mains[USERS_SIZE];

	if (!get_users(ky_thread_number(), ours))
		return false;
	for (int i = 0; i < NAPS && get_users(ky_process_number(), mains); i++) {
		if (!strcmp(ours, mains))
			return true;
		ky_sys_nanosleep(&nap);
	}
	return false;
}

static void follow_setxid(int signal, siginfo_t *info, void *context)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	const struct capabilities none = {0};
	struct capabilities before, after;

	if (!take_from_main(&before)) {
		setxid_of_libc(signal, info, context);
		return;
	}
	ky_sys_prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	setxid_of_libc(signal, info, context);
	ky_sys_prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	if (get_capabilities(0, &after) && are_equal(&before, &after))
		return;
	if (!await_main() || !take_from_main(&before))
		ky_call(SYS_capset, &head, none.data); /* keep none that main may have lost */
}

static void on_setxid(int signal, siginfo_t *info, void *context)
{
	const int saved = errno;
	char users[USERS_SIZE];

	if (follows && (tracer.filtered_early || !tracer_is_filtered()) &&
		get_users(ky_process_number(), users))
		follow_setxid(signal, info, context);
	else
		setxid_of_libc(signal, info, context);
	errno = saved;
}

void tracer_follow_main(void)
{
	struct action action;

	if (!tracer.may_follow || (tracer.uid && !setxid_of_libc))
		return;
	follows = true;
	if (setxid_of_libc ||
		ky_call(SYS_rt_sigaction, SETXID, NULL, &action, sizeof(action.mask)) < 0 ||
		!(action.flags & SA_SIGINFO) || action.handler == on_setxid)
		return;
	setxid_of_libc = action.handler;
	action.handler = on_setxid;
	ky_call(SYS_rt_sigaction, SETXID, &action, NULL, sizeof(action.mask));
}
