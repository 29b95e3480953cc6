/* SPDX-License-Identifier: MIT */
/* The archives of a trace, in a directory of their own. */
#include "consumerd/sink/archives.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

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
static void grow(const char *name)
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

/* The oldest is first; archives that are known are not measured again. */
static void test_renewed(void **state)
{
	struct archives a = {0};
	uint64_t bytes;

	(void)state;
	assert_int_equal(archives_renew(&a, root), 0);
	assert_int_equal(a.n, 0);
	grow("b-b-10");
	grow("a-b-9");
	assert_int_equal(archives_renew(&a, root), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.list[0].name, "a-b-9");
	assert_true(a.bytes >= 2 * (64 << 10));
	bytes = a.bytes;
	grow("a-b-9");
	assert_int_equal(archives_renew(&a, root), 0);
	assert_int_equal(a.bytes, bytes);
	grow("c-c-11");
	assert_int_equal(archives_renew(&a, root), 0);
	assert_int_equal(a.n, 3);
	assert_true(a.bytes > bytes);
	assert_int_equal(archives_remove_oldest(&a, root), 0);
	assert_int_equal(archives_renew(&a, root), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.list[0].name, "b-b-10");
	assert_int_equal(a.n_removed, 1);
	archives_deinit(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_renewed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
