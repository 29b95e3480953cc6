/* SPDX-License-Identifier: MIT */
#include "consumerd/confine.h"

#include <linux/landlock.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/util.h"
#include "svc/log.h"

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14) /* Linux 6.2 */
#endif
#define REFER_ABI                                                                                  \
	2 /* before it, files cannot be moved from one directory to another, which rotation does */
#define TRUNCATE_ABI 3

/* What the consumer, the C library below it and the event loop use, by whatever name the architecture has it. */
static const char *const calls[] = {
	/* files */
	"read", "pread64", "write", "writev", "pwrite64", "pwritev", "pwritev2", "close", "lseek",
	"fstat", "stat", "newfstatat", "statx", "fstatfs", "openat", "access", "faccessat",
	"faccessat2", "mkdirat", "unlinkat", "renameat", "renameat2", "getdents64", "readlinkat",
	"ftruncate", "fallocate", "fsync", "fdatasync", "sync_file_range", "fadvise64", "fcntl",
	/* memory and time */
	"brk", "munmap", "mremap", "madvise", "clock_gettime", "clock_nanosleep", "nanosleep",
	/* loop and sockets */
	"epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "connect",
	"getsockopt", "setsockopt", "sendmsg", "recvmsg", "shutdown",
	/* itself */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "restart_syscall", "futex", "getpid",
	"gettid", "geteuid", "getrandom", "prlimit64", "rseq", "sched_yield", "tgkill", "exit",
	"exit_group"};

/* With a value of one argument: of the bits of a mask, or exactly. */
static int allow_if(scmp_filter_ctx filter, int call, struct scmp_arg_cmp condition)
{
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &condition);
}

static int fill(scmp_filter_ctx filter)
{
	int ret = allow_if(filter, SCMP_SYS(mmap), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (!ret)
		ret = allow_if(
			filter, SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!ret)
		ret = allow_if(filter, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	for (size_t i = 0; !ret && i < KY_ARRAY_SIZE(calls); i++) {
		int call = seccomp_syscall_resolve_name(calls[i]);

		/* Another architecture may not have it. */
		if (call != __NR_SCMP_ERROR)
			ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
	}
	return ret;
}

static int restrict_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int ret = filter ? fill(filter) : -ENOMEM;

	if (!ret)
		ret = seccomp_load(filter);
	seccomp_release(filter);
	return ret;
}

static int landlock_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

static int restrict_writes(int dir_fd)
{
	struct landlock_ruleset_attr handled = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				     LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |
				     LANDLOCK_ACCESS_FS_REFER};
	struct landlock_path_beneath_attr below = {
		.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				  LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
				  LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER,
		.parent_fd = dir_fd};
	int abi = landlock_abi(), rules, ret = 0;

	if (abi < REFER_ABI)
		return abi < 0 ? -errno : -ENOSYS;
	if (abi >= TRUNCATE_ABI) {
		handled.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
		below.allowed_access |= LANDLOCK_ACCESS_FS_TRUNCATE;
	}
	rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	if (rules < 0)
		return -errno;
	if ((dir_fd >= 0 && syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
				    &below, 0) < 0) ||
		syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		ret = -errno;
	close(rules);
	return ret;
}

void confine(int dir_fd)
{
	int ret;

	if (KY_SANITIZED) /* whose runtime has needs of its own */
		return;
	ret = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : restrict_writes(dir_fd);
	if (ret < 0)
		ky_debug("writing is not limited to the trace directory: %s", strerror(-ret));
	ret = restrict_calls();
	if (ret < 0)
		ky_debug("system calls are not limited: %s", strerror(-ret));
}
