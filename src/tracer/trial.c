/* SPDX-License-Identifier: MIT */
/*
 * A system call filter that exists when the application starts (a service manager's, a
 * container's) applies to the listener too, and may kill for a call that only the listener makes.
 * Nothing reports beforehand what a filter does. So a child process makes each of these calls once,
 * in a way that has no effect, and the application is not traced if the child is killed.
 *
 * The child shares nothing with the application but one page, has no signal for its end (so no
 * handler and no wait() of the application notices it), and leaves no core file.
 *
 * A filter that a program installs later may kill for the question whether it exists. A thread of
 * its own asks, and dies alone.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "tracer/tracer.h"

struct trial {
	bool waits; /* wait4() is not forbidden */
	bool survived;
	bool follows; /* nor are the calls for changes of user and capabilities */
};

/*
 * The calls of libkymo and of a starting thread. Arguments that filters often look at are those of
 * the real call; the others make the call fail.
 */
static const struct call {
	long number, args[6];
} calls[] = {
	{SYS_unshare, {CLONE_FS}},
	{SYS_close_range, {~0U, ~0U, CLOSE_RANGE_UNSHARE}},
	{SYS_socket, {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0}},
	{SYS_connect, {-1}},
	{SYS_getsockopt, {-1, SOL_SOCKET, SO_PEERCRED}},
	{SYS_sendto, {-1, 0, 0, MSG_NOSIGNAL | MSG_DONTWAIT}},
	{SYS_recvmsg, {-1, 0, MSG_CMSG_CLOEXEC | MSG_DONTWAIT}},
	{SYS_signalfd4, {-1}},
	{SYS_membarrier, {MEMBARRIER_CMD_QUERY}},
	{SYS_madvise, {0, 0, MADV_WIPEONFORK}},
#ifdef SYS_mmap2 /* i386 */
	{SYS_mmap2, {0, 0, PROT_READ | PROT_WRITE, MAP_SHARED, -1}},
	{SYS_fstatat64, {-1}},
#else
	{SYS_mmap, {0, 0, PROT_READ | PROT_WRITE, MAP_SHARED, -1}},
	{SYS_newfstatat, {-1}},
#endif
	{SYS_mprotect, {0, 0, PROT_NONE}},
	{SYS_mremap, {0}},
	{SYS_munmap, {0}},
	{SYS_futex, {0, FUTEX_WAKE_PRIVATE}},
	{SYS_nanosleep, {0}},
	{SYS_clock_nanosleep, {CLOCK_REALTIME}},
	{SYS_clock_gettime, {CLOCK_MONOTONIC}},
	{SYS_prlimit64, {0, RLIMIT_NOFILE}},
	{SYS_getpid, {0}},
	{SYS_gettid, {0}},
	{SYS_geteuid, {0}},
	{SYS_getrandom, {0}},
	{SYS_tgkill, {0}},
	{SYS_rt_sigprocmask, {0}},
	{SYS_rt_sigaction, {0}},
	{SYS_rseq, {0}},
	{SYS_set_robust_list, {0}},
	{SYS_clone3, {0}},
	{SYS_openat, {AT_FDCWD, 0, O_RDONLY | O_CLOEXEC}},
	{SYS_getdents64, {-1}},
	{SYS_lseek, {-1}},
	{SYS_read, {-1}},
	{SYS_pread64, {-1}},
	{SYS_write, {-1}},
	{SYS_close, {-1}},
#ifdef SYS_poll
	{SYS_poll, {0}},
	{SYS_access, {0}},
	{SYS_readlink, {0}},
#endif
#ifdef SYS_ppoll
	{SYS_faccessat, {-1}},
	{SYS_readlinkat, {-1}},
#endif
};

/* Calls for changes of user and capabilities, without which all else works. */
static void make_more_calls(struct trial *t)
{
	uid_t user;

	ky_sys_prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	ky_sys_getresuid(&user, &user, &user);
	ky_call(SYS_capget, NULL, NULL);
	ky_call(SYS_capset, NULL, NULL);
	t->follows = true;
}

static void make_calls(struct trial *t)
{
	sigset_t all;

	sigfillset(&all);
	/* A killed process may leave a core file, which takes time. */
	ky_sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* A starting thread has all signals blocked, so that a trap kills. */
	sigprocmask(SIG_SETMASK, &all, NULL);
	ky_call(SYS_wait4, -1, NULL, WNOHANG | __WALL, NULL);
	t->waits = true;
	for (size_t i = 0; i < KY_ARRAY_SIZE(calls); i++) {
		const struct call *c = &calls[i];

		ky_call(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4],
			c->args[5]);
	}
	/* The C library ends the process if a thread that starts cannot register as others have. */
	ky_call(SYS_rseq, NULL, 0, 0, 0);
	t->survived = !ky_writer_has_rseq() || errno == EINVAL;
	if (t->survived)
		make_more_calls(t);
	for (;;)
		ky_call(SYS_exit, 0);
}

bool tracer_filter_kills(void)
{
	struct trial *t = mmap(
		NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool kills = false;
	pid_t pid;

	if (t == MAP_FAILED)
		return false;
	/* The calling thread continues when the child has ended. */
	pid = (pid_t)ky_call(SYS_clone, CLONE_VFORK, NULL, NULL, NULL, NULL);
	if (!pid)
		make_calls(t);
	if (pid > 0) {
		kills = !t->survived;
		tracer.may_follow = t->follows;
		if (t->waits)
			ky_call(SYS_wait4, pid, NULL, __WALL, NULL);
	}
	munmap(t, sizeof(*t));
	return kills;
}

/* A thread that only its maker knows: without a stack or a name of the C library. */
static struct {
	uint32_t lives; /* futex: the kernel clears it at its end */
	bool answered, filtered;
} asker KY_WRITTEN_EARLY;

/*
 * A handler of SIGSYS may run on it, too. The alignment keeps it behind all other data (sorted by
 * alignment), so that it does not part what is on one page.
 */
static char asker_stack[16384] __attribute__((aligned(1)));

/* glibc's clone(), by its other name. */
extern int __clone(int (*fn)(void *), void *stack_end, int flags, void *arg, ...)
	__attribute__((weak));

pid_t tracer_clone(int (*fn)(void *), void *stack_end, int flags, void *arg, uint32_t *lives)
{
	return &__clone ? __clone(fn, stack_end, flags, arg, NULL, NULL, lives)
			: clone(fn, stack_end, flags, arg, NULL, NULL, lives);
}

static int ask_if_filtered(void *unused)
{
	(void)unused;
	asker.filtered = tracer_is_filtered();
	asker.answered = true;
	return 0;
}

bool tracer_has_become_filtered(void)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
	char *stack_end = asker_stack + sizeof(asker_stack) - (uintptr_t)asker_stack % 16;

	/*
	 * A filter that forbids futex ends the caller here. CLONE_VFORK would wait without another
	 * call, but then a debugger that follows children takes the thread for one, and loses the
	 * program; valgrind ends it.
	 */
	asker.answered = false;
	asker.lives = 1;
	if (tracer_clone(ask_if_filtered, stack_end, flags, NULL, &asker.lives) < 0)
		return errno != EAGAIN; /* else a limit of threads */
	while (__atomic_load_n(&asker.lives, __ATOMIC_ACQUIRE))
		ky_call(SYS_futex, &asker.lives, FUTEX_WAIT, 1, NULL, NULL, 0);
	return !asker.answered || asker.filtered;
}
