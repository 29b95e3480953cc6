/* SPDX-License-Identifier: MIT */
/* How much of a trace may be sent, while it grows, is rotated, and is removed. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "ship/archives.h"
#include "ship/sender-internal.h"
#include "ship/sender.h"

#define PACKET 4096u

static struct {
	char path[64];
	int dir, stream, index, metadata;
	struct sender sender;
} t;

static int create_file(const char *path)
{
	int fd = openat(t.dir, path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	return fd;
}

static void append_to_fd(int fd, const void *p, size_t n)
{
	assert_int_equal(write(fd, p, n), n);
}

static int set_up(void **state)
{
	const struct ky_index_header h = {KY_INDEX_MAGIC, KY_INDEX_VERSION, 48, 0};

	snprintf(t.path, sizeof(t.path), "/tmp/kymo-test-sender-XXXXXX");
	assert_non_null(mkdtemp(t.path));
	t.dir = open(t.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(t.dir, "ust", 0755), 0);
	assert_int_equal(mkdirat(t.dir, "ust/index", 0755), 0);
	t.stream = create_file("ust/c_0");
	t.index = create_file("ust/index/c_0.kyx");
	t.metadata = create_file("ust/metadata");
	append_to_fd(t.index, &h, sizeof(h));
	assert_int_equal(sender_init(&t.sender, t.dir, "t", false), 0);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	sender_deinit(&t.sender);
	ky_close(t.stream);
	ky_close(t.index);
	ky_close(t.metadata);
	ky_close(t.dir);
	snprintf(command, sizeof(command), "rm -rf %s", t.path);
	return system(command);
}

static void add_packet(void)
{
	static const char bytes[PACKET];

	append_to_fd(t.stream, bytes, sizeof(bytes));
}

static void add_entry(uint64_t number)
{
	const struct ky_index_entry e = {.offset = number * PACKET, .size = PACKET, .n_events = 1};

	append_to_fd(t.index, &e, sizeof(e));
}

static struct sender_file *look_at_file(const char *path, bool final)
{
	assert_int_equal(sender_look(&t.sender, final, sender_is_moved(&t.sender)), 0);
	return sender_file_get(&t.sender, path);
}

/* A packet counts when its entry is in the index, and an entry when its packet is in the stream. */
static void test_stream(void **state)
{
	add_packet();
	assert_int_equal(look_at_file("ust/c_0", false)->counts, 0);
	add_entry(0);
	add_entry(1);
	assert_int_equal(look_at_file("ust/c_0", false)->counts, PACKET);
	assert_int_equal(look_at_file("ust/index/c_0.kyx", false)->counts, ky_index_offset(1));
	add_packet();
	assert_int_equal(look_at_file("ust/c_0", false)->counts, 2 * PACKET);
	assert_int_equal(look_at_file("ust/index/c_0.kyx", false)->counts, ky_index_offset(2));
	assert_int_equal(t.sender.size, 2 * PACKET + ky_index_offset(2));
}

/* A consumer that was killed left a packet without an entry: at the end, that is sent too. */
static void test_end(void **state)
{
	add_packet();
	add_entry(0);
	append_to_fd(t.stream, "rest", 4);
	assert_int_equal(look_at_file("ust/c_0", false)->counts, PACKET);
	assert_int_equal(look_at_file("ust/c_0", true)->counts, PACKET + 4);
}

/* Metadata counts up to the end of a declaration; at the end of the recording, all of it. */
static void test_metadata(void **state)
{
	append_to_fd(t.metadata, "event {\n};\n", 11);
	append_to_fd(t.metadata, "event {\n", 8);
	assert_int_equal(look_at_file("ust/metadata", false)->counts, 11);
	append_to_fd(t.metadata, "};\n", 3);
	assert_int_equal(look_at_file("ust/metadata", false)->counts, 22);
	append_to_fd(t.metadata, "event", 5);
	assert_int_equal(look_at_file("ust/metadata", true)->counts, 27);
}

/* All directories of the trace are sent, and the files beside them. */
static void test_many_directories(void **state)
{
	char path[32];

	ky_close(create_file("beside"));
	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "host%d", i);
		assert_int_equal(mkdirat(t.dir, path, 0755), 0);
		snprintf(path, sizeof(path), "host%d/c_0", i);
		ky_close(create_file(path));
	}
	look_at_file("beside", true);
	assert_int_equal(t.sender.n_tops, 41);
	assert_int_equal(t.sender.n_files, 3 + 1 + 40);
	assert_int_equal(sender_look(&t.sender, true, false), 0);
	assert_int_equal(t.sender.n_files, 3 + 1 + 40);
	assert_int_equal(t.sender.n_lost, 0);
}

/* Archives follow each other by their numbers; a sender begins with the first that was begun. */
static void test_archives(void **state)
{
	static const char *const names[] = {"1-2-8", "2-3-9", "3-4-10", "3-4-11"};
	struct archive a = {0};
	char path[64];

	archives_begin(t.dir, &a);
	assert_string_equal(a.name, "");
	assert_int_equal(mkdirat(t.dir, "archives", 0755), 0);
	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "archives/%s", names[i]);
		assert_int_equal(mkdirat(t.dir, path, 0755), 0);
		snprintf(path, sizeof(path), "archives/%s/ust", names[i]);
		assert_int_equal(i < 3 ? mkdirat(t.dir, path, 0755) : 0, 0);
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		assert_true(archives_next(t.dir, &a));
		assert_string_equal(a.name, names[i]);
		assert_int_equal(
			archives_state(t.dir, a.name), i < 3 ? ARCHIVE_NEW : ARCHIVE_EMPTY);
	}
	assert_false(archives_next(t.dir, &a));
	assert_int_equal(archives_count_new(t.dir), 3);
	archives_begin(t.dir, &a);
	assert_string_equal(a.name, "3-4-11");
	ky_close(create_file("archives/3-4-10/ust/.recording"));
	assert_int_equal(archives_state(t.dir, "3-4-10"), ARCHIVE_BEGUN);
	archives_begin(t.dir, &a);
	assert_string_equal(a.name, "2-3-9");
	ky_close(create_file("archives/3-4-10/ust/.shipped"));
	assert_int_equal(archives_state(t.dir, "3-4-10"), ARCHIVE_SHIPPED);
}

/* A name that no receiver takes: the reason is the name, and no other attempt can succeed. */
static void test_refused_name(void **state)
{
	ky_close(create_file("ust/my file"));
	assert_int_equal(sender_look(&t.sender, false, false), -EINVAL);
	assert_true(t.sender.is_refused);
	assert_non_null(strstr(t.sender.why, "'ust/my file' cannot be sent"));
}

/* Likewise, more files than numbers for them. */
static void test_too_many_files(void **state)
{
	char path[32];

	while (t.sender.n_files < SEGMENT_FILES_MAX) {
		snprintf(path, sizeof(path), "ust/c_%zu", t.sender.n_files);
		assert_non_null(sender_file_get(&t.sender, path));
	}
	assert_int_equal(sender_look(&t.sender, false, false), -EINVAL);
	assert_true(t.sender.is_refused);
	assert_string_equal(t.sender.why, "it has more than 65535 files");
}

/* A directory that cannot be opened is an error: its events would be missing. */
static void test_few_files(void **state)
{
	const int first = dup(t.dir); /* the lowest descriptor that is free */
	struct rlimit before, limit;

	close(first);
	assert_int_equal(unlinkat(t.dir, "ust/index/c_0.kyx", 0), 0);
	assert_int_equal(unlinkat(t.dir, "ust/index", AT_REMOVEDIR), 0);
	assert_int_equal(mkdirat(t.dir, "other", 0755), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)first + 1; /* for the directory that is searched */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(sender_look(&t.sender, true, false), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(sender_look(&t.sender, true, false), 0);
	assert_int_equal(t.sender.n_tops, 2);
}

/* A rotation moves the directories: the sender reads them where they are, and nothing new. */
static void test_rotation(void **state)
{
	int fd;

	add_packet();
	add_entry(0);
	assert_false(sender_is_moved(&t.sender));
	assert_int_equal(look_at_file("ust/c_0", false)->counts, PACKET);
	assert_int_equal(mkdirat(t.dir, "archives", 0755), 0);
	assert_int_equal(renameat(t.dir, "ust", t.dir, "archives/ust"), 0);
	assert_true(sender_is_moved(&t.sender));
	assert_int_equal(mkdirat(t.dir, "ust", 0755), 0);
	assert_true(sender_is_moved(&t.sender));
	ky_close(create_file("ust/new_0"));
	add_packet();
	add_entry(1);
	assert_int_equal(look_at_file("ust/c_0", true)->counts, 2 * PACKET);
	fd = sender_file_open(&t.sender, "ust/c_0");
	assert_true(fd >= 0);
	ky_close(fd);
	fd = sender_file_open(&t.sender, "ust/new_0");
	assert_int_equal(fd, -1);
	assert_int_equal(t.sender.n_lost, 0);
}

/* The machine failed while a rotation moved the chunk: the sender finds it in .moving. */
static void test_machine_failed(void **state)
{
	struct sender again;

	add_packet();
	add_entry(0);
	assert_int_equal(mkdirat(t.dir, ".moving", 0755), 0);
	assert_int_equal(renameat(t.dir, "ust", t.dir, ".moving/ust"), 0);
	assert_false(sender_is_moved(&t.sender));
	assert_int_equal(sender_init(&again, t.dir, "t", false), 0);
	assert_int_equal(again.n_tops, 1);
	assert_string_equal(again.tops[0].name, "ust");
	assert_memory_equal(again.id, t.sender.id, SEGMENT_ID_SIZE);
	sender_deinit(&again);
	assert_int_equal(mkdirat(t.dir, "archives", 0755), 0);
	assert_int_equal(renameat(t.dir, ".moving", t.dir, "archives/1"), 0);
	assert_true(sender_is_moved(&t.sender));
}

/* A file that was removed before all of it was sent is counted, once. */
static void test_removed(void **state)
{
	add_packet();
	add_entry(0);
	look_at_file("ust/c_0", false);
	assert_int_equal(unlinkat(t.dir, "ust/c_0", 0), 0);
	assert_true(look_at_file("ust/c_0", false)->lost);
	look_at_file("ust/c_0", false);
	assert_int_equal(t.sender.n_lost, 1);
}

/* A disk may have room for a part of the identifier. */
static void test_short_identifier(void **state)
{
	struct rlimit limit, less;
	struct sender other;

	assert_int_equal(unlinkat(t.dir, "ust/.recording", 0), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	less = (struct rlimit){.rlim_cur = SEGMENT_ID_SIZE / 2, .rlim_max = limit.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	assert_int_equal(sender_init(&other, t.dir, "t", false), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	sender_deinit(&other);
	assert_int_equal(sender_init(&other, t.dir, "t", false), 0);
	sender_deinit(&other);
}

/* The identifier belongs to the recording: a directory that follows a rotation gets another. */
static void test_identifier(void **state)
{
	struct sender again;

	assert_int_equal(sender_init(&again, t.dir, "other", false), 0);
	assert_memory_equal(again.id, t.sender.id, SEGMENT_ID_SIZE);
	sender_deinit(&again);
	assert_int_equal(renameat(t.dir, "ust", t.dir, "archives"), 0);
	assert_int_equal(mkdirat(t.dir, "ust", 0755), 0);
	assert_int_equal(sender_init(&again, t.dir, "t", false), 0);
	assert_memory_not_equal(again.id, t.sender.id, SEGMENT_ID_SIZE);
	sender_deinit(&again);
}

/* A pipe without a writer must not be waited for. */
static void test_watermark_is_a_pipe(void **state)
{
	assert_int_equal(mkfifoat(t.dir, ".watermark", 0644), 0);
	sender_read_watermark(&t.sender);
	assert_false(t.sender.has_watermark);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stream, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_metadata, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_directories, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_archives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rotation, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_machine_failed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short_identifier, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_identifier, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_watermark_is_a_pipe, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
