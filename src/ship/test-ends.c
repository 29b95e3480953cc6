/* SPDX-License-Identifier: MIT */
/* Both ends of a shipped trace, with receivers that are killed, and full disks. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctf/index.h"
#include "ship/files.h"
#include "ship/test-fixture.h"

/* Files that arrived are beginnings of those that were made, and have the packets of indexes. */
static void check_readable(const struct made *m, const char *far)
{
	static const char *const names[] = {"channel0_0", "metadata", "index/channel0_0.kyx"};
	char path[256], a[4096], b[4096];
	uint64_t sizes[3] = {0}, indexed = 0;

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		uint64_t at = 0;
		ssize_t n;
		int near, fd;

		snprintf(path, sizeof(path), "%s/t/ust/uid/0/%s", far, names[i]);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		snprintf(path, sizeof(path), "ust/uid/0/%s", names[i]);
		near = openat(m->dir, path, O_RDONLY);
		for (; (n = read(fd, a, sizeof(a))) > 0; at += (uint64_t)n) {
			assert_int_equal(pread(near, b, (size_t)n, (off_t)at), n);
			assert_memory_equal(a, b, n);
		}
		sizes[i] = at;
		if (i == 1)
			assert_true(at && files_readable(fd, 0, at) == at);
		if (i == 2)
			files_indexed(fd, UINT64_MAX, &indexed);
		close(near);
		close(fd);
	}
	if (indexed > ky_index_offset(0)) {
		struct ky_index_entry e;

		assert_int_equal(
			pread(m->index, &e, sizeof(e), (off_t)(indexed - sizeof(e))), sizeof(e));
		assert_true(e.offset + e.size <= sizes[0]);
	}
}

static void check_same(const struct made *m, const char *near, const char *far)
{
	char command[512];

	check_readable(m, far);
	snprintf(command, sizeof(command), "diff -r -x .recording -x .metadata.new '%s/%s' '%s/t'",
		top, near, far);
	assert_int_equal(system(command), 0);
}

static void test_killed(void **state)
{
	struct made m;
	struct sender s;
	char far[128];
	long calls = 0;

	make_trace(&m, "killed");
	make_far(far, "far-killed");
	add_packet(&m, 3000);
	assert_int_equal(sender_init(&s, m.dir, "t", true), 0);
	/* It grows between connections, so that each call comes up with files of all sizes. */
	while (connection(&s, far, FATE_KILLED, calls % 40) < 0) {
		check_readable(&m, far);
		if (m.n < 30)
			add_packet(&m, calls % 3 ? 500 : 90000);
		calls++;
		assert_true(calls < 10000);
	}
	/* From there on, nothing happens to it. */
	while (connection(&s, far, FATE_NONE, 0) < 0)
		;
	check_same(&m, "killed", far);
	assert_true(calls >= 10);
	sender_deinit(&s);
	free_trace(&m);
}

/* Each call of one transfer of many files, from nothing. */
static void test_killed_at_each(void **state)
{
	struct made m;
	char far[128], name[32];
	int ret = -1;

	make_trace(&m, "each");
	for (int i = 0; i < 8; i++)
		add_packet(&m, i % 4 ? 500 : 90000);
	for (long k = 0; ret < 0; k++) {
		struct sender s;

		snprintf(name, sizeof(name), "far-each-%ld", k);
		make_far(far, name);
		assert_int_equal(sender_init(&s, m.dir, "t", true), 0);
		ret = connection(&s, far, FATE_KILLED, k);
		check_readable(&m, far);
		if (ret < 0)
			assert_int_equal(connection(&s, far, FATE_NONE, 0), 0);
		check_same(&m, "each", far);
		sender_deinit(&s);
	}
	free_trace(&m);
}

static void test_full_disk(void **state)
{
	struct made m;
	char far[128], name[32];
	int ret = -1;

	make_trace(&m, "full");
	for (int i = 0; i < 8; i++)
		add_packet(&m, i % 4 ? 500 : 90000);
	for (long k = 0; ret < 0; k++) {
		struct sender s;

		snprintf(name, sizeof(name), "far-full-%ld", k);
		make_far(far, name);
		assert_int_equal(sender_init(&s, m.dir, "t", true), 0);
		ret = connection(&s, far, FATE_FULL, k);
		if (ret < 0)
			assert_non_null(strstr(s.why, "No space left"));
		check_readable(&m, far);
		if (ret < 0)
			assert_int_equal(connection(&s, far, FATE_NONE, 0), 0);
		check_same(&m, "full", far);
		sender_deinit(&s);
	}
	free_trace(&m);
}

/* Other recordings of the name, and a directory of somebody else, keep theirs. */
static void test_names(void **state)
{
	static const char *const names[] = {"one", "two"};
	char far[128], path[256];
	struct made m[2];

	make_far(far, "far-names");
	snprintf(path, sizeof(path), "%s/t", far);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/t/mine", far);
	close(open(path, O_CREAT | O_WRONLY, 0644));
	for (int i = 0; i < 2; i++) {
		make_trace(&m[i], names[i]);
		for (int j = 0; j <= i; j++)
			add_packet(&m[i], 100);
	}
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 2; i++) {
			struct sender s;
			struct stat st;

			assert_int_equal(sender_init(&s, m[i].dir, "t", true), 0);
			assert_int_equal(connection(&s, far, FATE_NONE, 0), 0);
			sender_deinit(&s);
			snprintf(path, sizeof(path), "%s/t-%d/ust/uid/0/channel0_0", far, i + 2);
			assert_int_equal(stat(path, &st), 0);
			assert_int_equal(st.st_size, m[i].size);
		}
	snprintf(path, sizeof(path), "%s/t-4", far);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/t/ust", far);
	assert_int_equal(access(path, F_OK), -1);
	free_trace(&m[0]);
	free_trace(&m[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_at_each),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
