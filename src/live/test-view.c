/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "ctf/index.h"
#include "live/view.h"

#define PACKET_SIZE 256u
#define CLOCK_MASK  ((UINT64_C(1) << 27) - 1)

static const char metadata[] = "trace {\n};\n";
static char top[] = "/tmp/kymo-view-XXXXXX";
static int root;

static void make_dirs(const char *chunk)
{
	char path[64];

	mkdirat(root, chunk, 0700);
	snprintf(path, sizeof(path), "%s/kernel", chunk);
	mkdirat(root, path, 0700);
	snprintf(path, sizeof(path), "%s/kernel/index", chunk);
	mkdirat(root, path, 0700);
}

static void append_to_file(const char *path, const void *data, size_t n)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

static void set_watermark(uint64_t clock)
{
	const struct ky_watermark w = {.clock = clock};

	unlinkat(root, KY_WATERMARK_NAME, 0);
	append_to_file(KY_WATERMARK_NAME, &w, sizeof(w));
}

/* A packet of one event at `first`, behind the others of the stream in the chunk. */
static void add_packet_to(
	const char *chunk, unsigned stream, uint64_t begin, uint64_t first, uint64_t end)
{
	uint8_t bytes[PACKET_SIZE] = {0};
	const uint32_t record = (uint32_t)(first & CLOCK_MASK) << 5;
	struct ky_ctf_packet p = {.magic = KY_CTF_MAGIC,
		.stream_instance_id = stream,
		.timestamp_begin = begin,
		.timestamp_end = end,
		.n_events = 1,
		.content_bits = PACKET_SIZE * 8,
		.packet_bits = PACKET_SIZE * 8};
	char file[64], index[64];
	struct ky_index_header header;
	struct ky_index_entry entry;
	struct stat st = {0};

	snprintf(file, sizeof(file), "%s/kernel/c_%u", chunk, stream);
	snprintf(index, sizeof(index), "%s/kernel/index/c_%u.kyx", chunk, stream);
	fstatat(root, file, &st, 0);
	p.seq_num = (uint64_t)st.st_size / PACKET_SIZE;
	memcpy(bytes, &p, sizeof(p));
	memcpy(bytes + sizeof(p), &record, sizeof(record));
	append_to_file(file, bytes, sizeof(bytes));
	ky_index_header_init(&header);
	if (!p.seq_num)
		append_to_file(index, &header, sizeof(header));
	ky_index_entry_init(&entry, &p, (uint64_t)st.st_size);
	append_to_file(index, &entry, sizeof(entry));
}

static void add_packet(unsigned stream, uint64_t begin, uint64_t first, uint64_t end)
{
	add_packet_to(".", stream, begin, first, end);
}

/* The viewer learns of all streams that were found. */
static unsigned announce_all(struct view *v)
{
	struct view_stream *s;
	unsigned n = 0;

	for (; (s = view_next_new(v)); n++)
		view_announce(v, s);
	return n;
}

static struct view_index next_of(struct view *v, unsigned stream)
{
	struct view_index i;

	assert_int_equal(view_look(v), 0);
	view_next_index(v, &v->streams[stream], &i);
	return i;
}

static uint64_t served_begin(struct view *v, unsigned stream)
{
	struct ky_buf b = {0};
	struct ky_ctf_packet p;

	assert_int_equal(
		view_read(v, &v->streams[stream], v->streams[stream].at, sizeof(p), &b), sizeof(p));
	memcpy(&p, b.data, sizeof(p));
	ky_buf_deinit(&b);
	return p.timestamp_begin;
}

/* Files that no consumer makes are no streams. They stay for the other tests. */
static void test_odd_files(void **state)
{
	struct view v;

	append_to_file("kernel/fifo", "", 0);
	assert_int_equal(mkfifoat(root, "kernel/index/fifo.kyx", 0600), 0);
	append_to_file("kernel/link", "", 0);
	assert_int_equal(symlinkat("none", root, "kernel/index/link.kyx"), 0);
	set_watermark(100);
	assert_int_equal(view_init(&v, root, true), 0);
	assert_int_equal(view_look(&v), 0);
	assert_int_equal(announce_all(&v), 0);
	view_deinit(&v);
}

/* Stream 0 is the beacon; the others are numbered as the viewer finds them. */
static void test_mark(void **state)
{
	struct view v;
	struct view_index i;

	add_packet(0, 100, 150, 200);
	add_packet(0, 200, 250, 300);
	set_watermark(1000);
	assert_int_equal(view_init(&v, root, true), 0);
	assert_int_equal(view_look(&v), 0);
	assert_int_equal(announce_all(&v), 2);
	i = next_of(&v, 1);
	assert_int_equal(i.status, VIEW_OK);
	assert_int_equal(i.end, 200);
	assert_int_equal(next_of(&v, 1).end, 300);
	for (unsigned stream = 0; stream < 2; stream++) {
		i = next_of(&v, stream);
		assert_int_equal(i.status, VIEW_INACTIVE);
		assert_in_range(i.end, 900, 1000);
		assert_int_equal(next_of(&v, stream).status, VIEW_RETRY);
	}

	/* Beyond the mark, which the beacon states. It begins where the viewer is. */
	add_packet(0, 300, 1100, 1200);
	i = next_of(&v, 1);
	assert_int_equal(i.status, VIEW_OK);
	assert_int_equal(i.end, 1200);
	assert_in_range(i.begin, 900, 1000);
	assert_int_equal(served_begin(&v, 1), i.begin);
	assert_int_equal(next_of(&v, 0).status, VIEW_RETRY);
	set_watermark(1200);
	assert_int_equal(next_of(&v, 1).status, VIEW_RETRY);
	i = next_of(&v, 0);
	assert_int_equal(i.status, VIEW_INACTIVE);
	assert_in_range(i.end, 1100, 1200);

	/* Too late: its record is before what the viewer knows. */
	add_packet(0, 1200, 1210, 1220);
	assert_int_equal(next_of(&v, 1).status, VIEW_OK);
	set_watermark(2000);
	assert_int_equal(next_of(&v, 1).status, VIEW_INACTIVE);
	add_packet(0, 1220, 1250, 2100);
	set_watermark(3000);
	i = next_of(&v, 1);
	assert_int_equal(i.status, VIEW_INACTIVE);
	assert_int_equal(v.n_late, 1);

	/* A new stream is announced, by an empty packet, before the mark advances. */
	add_packet(1, 3000, 3100, 3200);
	set_watermark(4000);
	i = next_of(&v, 1);
	assert_int_equal(i.status, VIEW_OK);
	assert_true(i.new_streams && i.size == sizeof(struct ky_ctf_packet));
	assert_int_equal(i.end, v.streams[1].known);
	assert_int_equal(v.mark, 3000);
	assert_int_equal(announce_all(&v), 1);
	assert_int_equal(next_of(&v, 2).end, 3200);
	assert_int_equal(v.mark, 4000);

	/* The first record of a new stream came too late. */
	add_packet(2, 100, 150, 4100);
	set_watermark(5000);
	assert_true(next_of(&v, 0).new_streams);
	assert_int_equal(announce_all(&v), 1);
	assert_int_equal(next_of(&v, 3).status, VIEW_INACTIVE);
	assert_int_equal(v.n_late, 2);

	/* The end. */
	set_watermark(UINT64_MAX);
	for (unsigned stream = 0; stream < 3; stream++)
		assert_int_equal(next_of(&v, stream).status, VIEW_HUNG_UP);
	assert_true(v.over);
	view_deinit(&v);
}

/* A viewer that wants what comes from now on: that is, packets that end beyond the mark. */
static void test_from_now(void **state)
{
	unsigned n_served = 0;
	struct view v;

	set_watermark(3199);
	assert_int_equal(view_init(&v, root, false), 0);
	assert_int_equal(view_look(&v), 0);
	assert_int_equal(announce_all(&v), 4);
	for (unsigned i = 1; i < 4; i++)
		n_served += next_of(&v, i).status == VIEW_OK;
	assert_int_equal(n_served, 2);
	view_deinit(&v);
}

/* Makes the archive of the only stream of a chunk. */
static void add_archive(const char *path, unsigned stream)
{
	char metadata_path[64];

	make_dirs(path);
	snprintf(metadata_path, sizeof(metadata_path), "%s/kernel/metadata", path);
	append_to_file(metadata_path, metadata, strlen(metadata));
	add_packet_to(path, stream, 4000, 4100, 4200);
}

/* However few files may be open, a viewer that gets no error has found all chunks. */
static void test_few_files(void **state)
{
	const int first = dup(root); /* the lowest descriptor that is free */
	struct rlimit before, limit;
	unsigned n_refused = 0;
	struct view v;
	int ret;

	close(first);
	mkdirat(root, "archives", 0700);
	add_archive("archives/1-2-0", 7);
	add_archive("archives/2-3-1", 8);
	add_archive(".moving", 9);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	do {
		limit.rlim_cur = (rlim_t)first + n_refused;
		assert_int_equal(view_init(&v, root, true), 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		ret = view_look(&v);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		if (ret) {
			assert_int_equal(ret, -EMFILE);
			assert_in_range(++n_refused, 1, 100);
		} else {
			assert_int_equal(announce_all(&v), 7);
		}
		view_deinit(&v);
	} while (ret);
	assert_true(n_refused > 0);
}

/* A packet of metadata has the declarations that the viewer does not have. */
static void expect_metadata(struct view *v, const char *text)
{
	const size_t n = strlen(text), head = 37;
	struct ky_buf b = {0};

	assert_int_equal(view_read_metadata(v, &v->traces[0], &b), n ? head + n : 0);
	assert_int_equal(b.len, n ? head + n : 0);
	if (n)
		assert_memory_equal(b.data + head, text, n);
	ky_buf_deinit(&b);
}

static void test_metadata(void **state)
{
	static const char more[] = "event {\n};\n";
	struct view v;

	assert_int_equal(view_init(&v, root, true), 0);
	assert_int_equal(view_look(&v), 0);
	assert_true(v.n_traces > 0);
	expect_metadata(&v, metadata);
	expect_metadata(&v, "");
	append_to_file("kernel/metadata", more, strlen(more) - 1);
	expect_metadata(&v, ""); /* the declaration is not whole */
	append_to_file("kernel/metadata", more + strlen(more) - 1, 1);
	expect_metadata(&v, more);
	view_deinit(&v);
}

static int make_trace(void **state)
{
	assert_non_null(mkdtemp(top));
	root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_dirs(".");
	append_to_file("kernel/metadata", metadata, strlen(metadata));
	append_to_file(".recording", "x", 1); /* its sender may come back */
	return 0;
}

static int remove_trace(void **state)
{
	char command[64];

	close(root);
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_odd_files),
		cmocka_unit_test(test_mark),
		cmocka_unit_test(test_from_now),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_few_files),
	};

	return cmocka_run_group_tests(tests, make_trace, remove_trace);
}
