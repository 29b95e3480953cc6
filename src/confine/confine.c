/* SPDX-License-Identifier: MIT */
#include "confine/confine.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/util.h"

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14) /* Linux 6.2 */
#endif
#define REFER_ABI    2 /* older ones cannot move files between directories; a rotation does */
#define TRUNCATE_ABI 3

/* clang-format off */
/* System calls that all of them, the C library and event loops use. */
static const uint32_t calls[] = {
	/* files */
	SYS_read, SYS_pread64, SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_close, SYS_lseek, SYS_fstat,
	SYS_newfstatat, SYS_statx, SYS_fstatfs, SYS_openat, SYS_openat2, SYS_faccessat, SYS_faccessat2, SYS_mkdirat, SYS_unlinkat,
	SYS_renameat2, SYS_getdents64, SYS_readlinkat, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync,
	SYS_sync_file_range, SYS_syncfs, SYS_flock, SYS_fadvise64,
	/* memory and time */
	SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_memfd_create, SYS_clock_gettime, SYS_clock_nanosleep, SYS_nanosleep,
	/* loop and sockets */
	SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_ppoll, SYS_getsockopt, SYS_setsockopt,
	SYS_sendmsg, SYS_recvmsg, SYS_shutdown,
	/* process, threads and signals */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall, SYS_futex, SYS_getpid, SYS_gettid,
	SYS_geteuid, SYS_getrandom, SYS_rseq, SYS_sched_yield, SYS_exit, SYS_exit_group,
#ifdef __x86_64__ /* older system calls for the same purposes */
	SYS_access, SYS_stat, SYS_renameat, SYS_epoll_wait, SYS_poll,
#endif
};

static const uint32_t accepting[] = {SYS_accept4, SYS_recvfrom, SYS_sendto};

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define LOAD(offset)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define SKIP(n)	      BPF_STMT(BPF_JMP | BPF_JA, n)
/* If the value differs, skips n instructions. */
#define IF(value, n)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)
#define IF_HAS(bit, n) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bit, 0, n)
#define ALLOW	      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY	      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)
#define CALL	      offsetof(struct seccomp_data, nr)
/* The low half of argument n. */
#define ARGUMENT(n)   (offsetof(struct seccomp_data, args[n]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

#ifdef ARCHITECTURE
static const struct sock_filter conditions[] = {
	/*
	 * For a system call of another table (32-bit), the loaded value stays the architecture. No
	 * call has this number, so the call is denied.
	 */
	LOAD(offsetof(struct seccomp_data, arch)), IF(ARCHITECTURE, 1), LOAD(CALL),
	IF(SYS_mmap, 1), SKIP(1), IF(SYS_mprotect, 4), LOAD(ARGUMENT(2)), IF_HAS(PROT_EXEC, 1), DENY, ALLOW,
};

/* No signals to others when a file is ready. */
static const struct sock_filter controlling[] = {
	IF(SYS_fcntl, 8), LOAD(ARGUMENT(1)), IF(F_SETOWN, 1), DENY, IF(F_SETOWN_EX, 1), DENY, IF(F_SETSIG, 1), DENY, ALLOW,
};

static struct sock_filter *allow(struct sock_filter *to, const uint32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		*to++ = (struct sock_filter)IF(list[i], 1);
		*to++ = (struct sock_filter)ALLOW;
	}
	return to;
}

#define ONE_SIZE 5
#define ONES_MAX 3

/* Allows a system call if its first argument, of 32 bits, has this value. */
static struct sock_filter *allow_one(struct sock_filter *to, uint32_t call, uint32_t value)
{
	const struct sock_filter one[ONE_SIZE] = {IF(call, 4), LOAD(ARGUMENT(0)), IF(value, 1), ALLOW, DENY};

	memcpy(to, one, sizeof(one));
	return to + ONE_SIZE;
}

/* Installs the filter. libseccomp is not used: it may hang if memory is short. 0 or -errno. */
static int restrict_calls(const struct ky_confinement *c)
{
	static const uint32_t connecting[] = {SYS_connect};
	struct sock_filter filter[KY_ARRAY_SIZE(conditions) + KY_ARRAY_SIZE(controlling) + ONES_MAX * ONE_SIZE +
		2 * (KY_ARRAY_SIZE(calls) + KY_ARRAY_SIZE(accepting) + KY_ARRAY_SIZE(connecting)) + 1];
	struct sock_filter *to = filter + KY_ARRAY_SIZE(conditions);
	struct sock_fprog program = {.filter = filter};

	memcpy(filter, conditions, sizeof(conditions));
	to = allow(to, calls, KY_ARRAY_SIZE(calls));
	if (c->accepts)
		to = allow(to, accepting, KY_ARRAY_SIZE(accepting));
	if (c->connects) {
		to = allow(to, connecting, KY_ARRAY_SIZE(connecting));
		to = allow_one(to, SYS_socket, AF_UNIX);
	}
	/* For this process only: abort() sends it a signal. */
	to = allow_one(to, SYS_tgkill, (uint32_t)getpid());
	to = allow_one(to, SYS_prlimit64, 0);
	memcpy(to, controlling, sizeof(controlling));
	to += KY_ARRAY_SIZE(controlling);
	*to++ = (struct sock_filter)DENY;
	program.len = (unsigned short)(to - filter);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}
#else
static int restrict_calls(const struct ky_confinement *c)
{
	return -ENOSYS;
}
#endif
/* clang-format on */

static int landlock_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITES                                                                                     \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
		LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                     \
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER)
#define NEVER                                                                                      \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |                               \
		LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                      \
		LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

static int restrict_files(const struct ky_confinement *c)
{
	const int abi = landlock_abi();
	const uint64_t writes = WRITES | (abi >= TRUNCATE_ABI ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
	const struct landlock_ruleset_attr handled = {
		.handled_access_fs = NEVER | writes | (c->writes ? 0 : READS)};
	struct landlock_path_beneath_attr below = {.allowed_access = c->writes ? writes : READS};
	int rules, ret = 0;

	if (abi < REFER_ABI)
		return abi < 0 ? -errno : -ENOSYS;
	rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	if (rules < 0)
		return -errno;
	for (size_t i = 0; i < c->n_dirs && !ret; i++) {
		below.parent_fd = c->dirs[i];
		if (c->dirs[i] >= 0 && syscall(SYS_landlock_add_rule, rules,
					       LANDLOCK_RULE_PATH_BENEATH, &below, 0) < 0)
			ret = -errno;
	}
	if (!ret && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		ret = -errno;
	close(rules);
	return ret;
}

static int give_up_privileges(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* A sanitizer's runtime needs other calls. */
int ky_confine_files(const struct ky_confinement *c)
{
	int ret = KY_SANITIZED ? 0 : give_up_privileges();

	return KY_SANITIZED || ret ? ret : restrict_files(c);
}

int ky_confine_calls(const struct ky_confinement *c)
{
	int ret = KY_SANITIZED ? 0 : give_up_privileges();

	return KY_SANITIZED || ret ? ret : restrict_calls(c);
}
