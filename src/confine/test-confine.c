/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <linux/landlock.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/util.h"
#include "confine/confine.h"

static char top[] = "/tmp/kymo-confine-XXXXXX";

static int open_dir(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	mkdir(path, 0700);
	return open(path, O_DIRECTORY | O_CLOEXEC);
}

static bool can_make(int dir, const char *name)
{
	int fd = openat(dir, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	ky_close(fd);
	return fd >= 0;
}

static bool can_connect(int domain)
{
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ky_close(fd);
	return fd >= 0;
}

static bool can_map(int prot)
{
	void *p = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		munmap(p, 4096);
	return p != MAP_FAILED;
}

static pid_t parent;
static int inside, also, outside, open_fd; /* directories; a file in the last */

/* 0, or the number of the first thing that is not as it should be: likewise below. */
static int try_writes(void)
{
	if (!can_make(inside, "file") || !can_make(also, "file"))
		return 1;
	if (mkdirat(inside, "dir", 0700) < 0 || renameat(inside, "file", inside, "dir/file") < 0)
		return 2;
	if (unlinkat(inside, "dir/file", 0) < 0 || unlinkat(inside, "dir", AT_REMOVEDIR) < 0)
		return 3;
	if (write(open_fd, "x", 1) != 1 || ftruncate(open_fd, 0) < 0)
		return 4;
	if (can_make(outside, "file") || can_make(outside, "open"))
		return 5;
	return !mkdirat(outside, "dir", 0700) || !unlinkat(outside, "open", 0) ? 6 : 0;
}

static bool can_read(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	ky_close(fd);
	return fd >= 0;
}

static int try_reads(void)
{
	if (!can_read(inside, "read") || !can_read(inside, "."))
		return 1;
	if (can_read(outside, "open") || can_read(outside, ".") ||
		can_read(AT_FDCWD, "/etc/passwd"))
		return 2;
	return can_make(inside, "file") || !unlinkat(inside, "read", 0) ? 3 : 0;
}

/* Signals to other processes, and limits of them. */
static int try_others(void)
{
	const struct f_owner_ex owner = {F_OWNER_PID, parent};
	struct rlimit limit;

	if (syscall(SYS_tgkill, getpid(), gettid(), 0) < 0 ||
		!syscall(SYS_tgkill, parent, parent, 0))
		return 21;
	if (getrlimit(RLIMIT_CPU, &limit) < 0 || !prlimit(parent, RLIMIT_CPU, NULL, &limit))
		return 22;
	if (fcntl(open_fd, F_GETFL) < 0 || !fcntl(open_fd, F_SETOWN, parent) ||
		!fcntl(open_fd, F_SETOWN_EX, &owner) || !fcntl(open_fd, F_SETSIG, SIGTERM))
		return 23;
	return kill(parent, 0) == 0 ? 24 : 0;
}

static int try_calls(void)
{
	char *const argv[] = {(char *)"true", NULL};

	if (can_connect(AF_INET))
		return 1;
	if (!can_map(PROT_READ | PROT_WRITE) || can_map(PROT_READ | PROT_EXEC))
		return 2;
	execv("/bin/true", argv);
	return fork() >= 0 ? 3 : try_others();
}

static bool can_accept(void)
{
	return accept4(open_fd, NULL, NULL, SOCK_CLOEXEC) >= 0 || errno != ENOSYS;
}

static int try_connecting(void)
{
	if (!can_connect(AF_UNIX) || can_accept())
		return 10;
	return try_calls();
}

static int try_accepting(void)
{
	if (can_connect(AF_UNIX) || !can_accept())
		return 10;
	return try_calls();
}

static void try_confined(const struct ky_confinement *c, int (*try)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		ky_confine_files(c);
		ky_confine_calls(c);
		_exit(try());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void need_landlock(void)
{
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 2) {
		print_message("SKIP: this kernel has no Landlock that lets files be moved\n");
		skip();
	}
}

static void test_writes(void **state)
{
	const int dirs[] = {inside, -1, also};
	const struct ky_confinement c = {.dirs = dirs, .n_dirs = 3, .writes = true};

	need_landlock();
	try_confined(&c, try_writes);
}

static void test_reads(void **state)
{
	const struct ky_confinement c = {.dirs = &inside, .n_dirs = 1};

	need_landlock();
	try_confined(&c, try_reads);
}

static void test_calls(void **state)
{
	if (prctl(PR_GET_SECCOMP) < 0) {
		print_message("SKIP: this kernel has no seccomp\n");
		skip();
	}
	try_confined(&(struct ky_confinement){.writes = true, .connects = true}, try_connecting);
	try_confined(&(struct ky_confinement){.accepts = true}, try_accepting);
}

static int make_dirs(void **state)
{
	assert_non_null(mkdtemp(top));
	parent = getpid();
	inside = open_dir("inside");
	also = open_dir("also");
	outside = open_dir("outside");
	open_fd = openat(outside, "open", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(can_make(inside, "read"));
	return 0;
}

static int remove_dirs(void **state)
{
	char command[64];

	ky_close(open_fd);
	ky_close(outside);
	ky_close(also);
	ky_close(inside);
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, make_dirs, remove_dirs);
}
