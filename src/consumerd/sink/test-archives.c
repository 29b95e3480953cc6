/* SPDX-License-Identifier: MIT */
/* The archives of a trace, in a directory of their own. */
#include "consumerd/sink/archives.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "ctf/index.h"
#include "svc/tree.h"

static int root;

static int setup(void **state)
{
	char path[] = "/tmp/kymo-archives-XXXXXX";

	if (!mkdtemp(path))
		return -1;
	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = strdup(path);
	return mkdirat(root, "archives", 0700);
}

static int teardown(void **state)
{
	close(root);
	ky_tree_remove(AT_FDCWD, *state);
	free(*state);
	return 0;
}

/* Adds 64 KiB to the file of an archive. */
static void grow_archive(const char *name)
{
	static const char bytes[64 << 10] = "x";
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "archives/%s", name);
	mkdirat(root, path, 0700);
	snprintf(path, sizeof(path), "archives/%s/stream", name);
	fd = openat(root, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	fsync(fd); /* some file systems do not count the blocks before */
	close(fd);
}

static void renew(struct archives *a, uint64_t now_s)
{
	assert_int_equal(archives_renew(a, root, now_s), 0);
}

/* The oldest is first; archives that are known for some time are not measured again. */
static void test_renewed(void **state)
{
	struct archives a = {0};
	uint64_t bytes, now = 1000;

	(void)state;
	renew(&a, now);
	assert_int_equal(a.n, 0);
	grow_archive("b-b-10");
	grow_archive("a-b-9");
	renew(&a, now);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.list[0].name, "a-b-9");
	assert_true(a.bytes >= 2 * (64 << 10));
	bytes = a.bytes;
	grow_archive("a-b-9"); /* as a file system that counts late */
	renew(&a, now + ARCHIVES_MEASURED_S - 1);
	assert_true(a.bytes > bytes);
	bytes = a.bytes;
	grow_archive("a-b-9");
	now += ARCHIVES_MEASURED_S;
	renew(&a, now);
	assert_int_equal(a.bytes, bytes);
	grow_archive("c-c-11");
	renew(&a, now);
	assert_int_equal(a.n, 3);
	assert_true(a.bytes > bytes);
	assert_int_equal(archives_remove_oldest(&a, root), 0);
	renew(&a, now);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.list[0].name, "b-b-10");
	assert_int_equal(a.n_removed, 1);
	archives_deinit(&a);
}

static void set_mtime(const char *path, time_t s)
{
	const struct timespec times[2] = {{.tv_sec = s}, {.tv_sec = s}};

	assert_int_equal(utimensat(root, path, times, 0), 0);
}

/* The wall clock decides how old an archive is when it is first seen, and never again. */
static void test_age(void **state)
{
	struct archives a = {0};
	time_t s = time(NULL);

	(void)state;
	grow_archive("a-a-1");
	set_mtime("archives/a-a-1", s - 1000);
	grow_archive("b-b-2");
	set_mtime("archives/b-b-2", s + 1000000);
	renew(&a, 5);
	assert_in_range(a.list[0].age_s, 1000, 100000);
	assert_int_equal(a.list[1].age_s, 0);
	set_mtime("archives/a-a-1", 0); /* as if the clock was set since then */
	set_mtime("archives/b-b-2", 0);
	renew(&a, 6);
	assert_in_range(a.list[0].age_s, 1000, 100000);
	assert_int_equal(a.list[1].age_s, 0);
	assert_int_equal(a.list[1].seen_s, 5);
	archives_deinit(&a);
}

/* Adds an index of one packet to an archive. */
static void add_index(const char *name, uint64_t n_events)
{
	const struct ky_index_entry e = {.n_events = n_events};
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "archives/%s/stream.kyx", name);
	fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(fd, &e, sizeof(e), (off_t)ky_index_offset(0)), sizeof(e));
	close(fd);
}

/* Lets the process open n more files. */
static void limit_files(unsigned n)
{
	struct rlimit l;
	int next = dup(root);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	close(next);
	l.rlim_cur = n == UINT_MAX ? l.rlim_max : (rlim_t)next + n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

/* An archive is removed when its events are counted, and not before. */
static void test_counted(void **state)
{
	struct archives a = {0};
	unsigned n = 0;

	grow_archive("a-a-1");
	add_index("a-a-1", 7);
	renew(&a, 5);
	for (int ret = -EMFILE; ret; n++) {
		limit_files(n);
		ret = archives_renew(&a, root, 5);
		if (!ret)
			ret = archives_remove_oldest(&a, root);
		assert_true(!ret || ret == -EMFILE);
		limit_files(UINT_MAX);
		renew(&a, 5);
		assert_int_equal(a.n, ret ? 1 : 0);
		assert_int_equal(a.removed_events, ret ? 0 : 7);
	}
	assert_true(n > 3);
	/* If the counts cannot be read, they are not replaced. */
	limit_files(1);
	assert_int_equal(archives_renew(&a, root, 5), -EMFILE);
	limit_files(UINT_MAX);
	archives_deinit(&a);
}

/* Uses up the disk. */
static void fill_disk(void)
{
	static const char bytes[4096] = "x";
	int fd = openat(root, "archives/.filler", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

/* On a disk without a free byte, archives are removed and counted. */
static void test_full_disk(void **state)
{
	struct archives a = {0}, again = {0};
	char path[64];

	if (geteuid() != 0)
		skip();
	snprintf(path, sizeof(path), "%s/archives", (const char *)*state);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", path, "tmpfs", 0, "size=256K"), 0);
	close(root);
	root = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with the mount */
	grow_archive("a-a-1");
	grow_archive("b-b-2");
	renew(&a, 5);
	for (unsigned i = 1; i <= 2; i++) {
		fill_disk();
		assert_int_equal(archives_remove_oldest(&a, root), 0);
		assert_int_equal(a.n_removed, i);
	}
	renew(&again, 6);
	assert_int_equal(again.n, 0);
	assert_int_equal(again.n_removed, 2);
	assert_string_equal(again.last_removed, "b-b-2");
	archives_deinit(&a);
	archives_deinit(&again);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_renewed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_age, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
