/* SPDX-License-Identifier: MIT */
#include <endian.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <cmocka.h>

#include "ctf/index.h"
#include "live/viewer.h"

#define PACKET_SIZE 256u
#define CLOCK_MASK  ((UINT64_C(1) << 27) - 1)

enum { ATTACH = 3, NEXT_INDEX = 4, DETACH = 9 }; /* requests of viewers */

static const char metadata[] = "trace {\n};\n";
static char top[] = "/tmp/kymo-view-XXXXXX";
static char fresh[sizeof(top)]; /* the directory of a test that has one of its own */
static int root, first_root;
static int64_t passed_s; /* the time that has passed */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int ret = __real_clock_gettime(id, ts);

	ts->tv_sec += passed_s;
	return ret;
}

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

/* Appends a packet to a stream file of a trace, and its entry to the file's index. */
static void put_packet(
	const char *trace, const char *name, struct ky_ctf_packet p, const void *record, size_t n)
{
	uint8_t bytes[PACKET_SIZE] = {0};
	char file[64], index[64];
	struct ky_index_header header;
	struct ky_index_entry entry;
	struct stat st = {0};

	snprintf(file, sizeof(file), "%s/%s", trace, name);
	snprintf(index, sizeof(index), "%s/index/%s.kyx", trace, name);
	fstatat(root, file, &st, 0);
	memcpy(bytes, &p, sizeof(p));
	memcpy(bytes + sizeof(p), record, n);
	append_to_file(file, bytes, sizeof(bytes));
	ky_index_header_init(&header);
	if (!st.st_size)
		append_to_file(index, &header, sizeof(header));
	ky_index_entry_init(&entry, &p, (uint64_t)st.st_size);
	append_to_file(index, &entry, sizeof(entry));
}

/* The head of a packet with one event. */
static struct ky_ctf_packet packet_of(unsigned stream, uint64_t seq, uint64_t begin, uint64_t end)
{
	return (struct ky_ctf_packet){.magic = KY_CTF_MAGIC,
		.stream_instance_id = stream,
		.seq_num = seq,
		.timestamp_begin = begin,
		.timestamp_end = end,
		.n_events = 1,
		.content_bits = PACKET_SIZE * 8,
		.packet_bits = PACKET_SIZE * 8};
}

/* A packet of one event at `first`, behind the others of the stream in the chunk. */
static void add_packet_to(
	const char *chunk, unsigned stream, uint64_t begin, uint64_t first, uint64_t end)
{
	const uint32_t record = (uint32_t)(first & CLOCK_MASK) << 5;
	char trace[64], name[16], path[96];
	struct stat st = {0};

	snprintf(trace, sizeof(trace), "%s/kernel", chunk);
	snprintf(name, sizeof(name), "c_%u", stream);
	snprintf(path, sizeof(path), "%s/%s", trace, name);
	fstatat(root, path, &st, 0);
	put_packet(trace, name, packet_of(stream, (uint64_t)st.st_size / PACKET_SIZE, begin, end),
		&record, sizeof(record));
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

	for (; (s = view_next_new(v)); n++) {
		assert_false(s->announced);
		view_announce(v, s);
	}
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

/* --- tests with a trace of their own --- */

static void remove_stream(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "kernel/%s", name);
	assert_int_equal(unlinkat(root, path, 0), 0);
	snprintf(path, sizeof(path), "kernel/index/%s.kyx", name);
	assert_int_equal(unlinkat(root, path, 0), 0);
}

static void overwrite(const char *name, off_t at, uint8_t byte)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "kernel/%s", name);
	fd = openat(root, path, O_WRONLY);
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void begin_view(struct view *v, bool from_start, unsigned n_streams)
{
	assert_int_equal(view_init(v, root, from_start), 0);
	assert_int_equal(view_look(v), 0);
	assert_int_equal(announce_all(v), n_streams);
}

/* The ends of the next packets of a stream, and what comes then. */
static void expect_packets(
	struct view *v, unsigned stream, const uint64_t *ends, size_t n, enum view_status after)
{
	for (size_t i = 0; i < n; i++) {
		struct view_index index = next_of(v, stream);

		assert_int_equal(index.status, VIEW_OK);
		assert_int_equal(index.end, ends[i]);
	}
	assert_int_equal(next_of(v, stream).status, after);
}

/*
 * Files of limited size are read in the order of their packets, in whatever order a directory has
 * them. One that was removed is left out; one that is made later is found.
 */
static void test_several_files(void **state)
{
	static const uint64_t up[] = {110, 120, 130, 140, 150, 160}, later[] = {170};
	const uint32_t none = 0;
	unsigned grown;
	char name[16];
	struct view v, w;

	for (unsigned i = 0; i < 6; i++) {
		/* one stream's files are made upwards, the other's downwards */
		snprintf(name, sizeof(name), "up_%u", i);
		put_packet("kernel", name, packet_of(1, i, 100, 110 + 10 * i), &none, 4);
		snprintf(name, sizeof(name), "down_%u", 5 - i);
		put_packet("kernel", name, packet_of(2, 5 - i, 100, 160 - 10 * i), &none, 4);
	}
	set_watermark(1);
	begin_view(&v, true, 3);
	expect_packets(&v, 1, up, 6, VIEW_RETRY);
	expect_packets(&v, 2, up, 6, VIEW_RETRY);

	begin_view(&w, true, 3);
	expect_packets(&w, 1, up, 3, VIEW_OK); /* and so four of them */
	unlinkat(root, "kernel/index/up_4.kyx", 0);
	unlinkat(root, "kernel/index/down_4.kyx", 0);
	assert_int_equal(next_of(&w, 1).end, 160);
	expect_packets(&w, 2, up, 3, VIEW_OK);
	assert_int_equal(next_of(&w, 2).end, 160);
	view_deinit(&w);

	put_packet("kernel", "up_6", packet_of(1, 6, 160, 170), &none, 4);
	set_watermark(2);
	grown = v.streams[1].head.stream_instance_id == 1 ? 1 : 2;
	expect_packets(&v, grown, later, 1, VIEW_RETRY);
	view_deinit(&v);
}

/* Streams of two traces may have the same numbers. Another class is another stream, too. */
static void test_two_traces(void **state)
{
	static const uint64_t kernel[] = {200}, user[] = {300}, other[] = {400};
	struct ky_ctf_packet p = packet_of(1, 0, 100, 400);
	unsigned n_seen[3] = {0};
	const uint32_t none = 0;
	struct view v;

	for (const char *dir = "ust/uid/0/64-bit/index", *end = dir; end;) {
		char path[32];

		end = strchr(end + 1, '/');
		snprintf(path, sizeof(path), "%.*s", end ? (int)(end - dir) : 32, dir);
		assert_int_equal(mkdirat(root, path, 0700), 0);
	}
	append_to_file("ust/uid/0/64-bit/metadata", metadata, strlen(metadata));
	put_packet("kernel", "a", packet_of(1, 0, 100, 200), &none, 4);
	put_packet("ust/uid/0/64-bit", "a", packet_of(1, 0, 100, 300), &none, 4);
	p.stream_id = 7;
	put_packet("ust/uid/0/64-bit", "b", p, &none, 4);
	set_watermark(1);
	begin_view(&v, true, 4);
	assert_int_equal(v.n_traces, 2);
	for (unsigned i = 1; i < 4; i++) {
		const struct view_stream *s = &v.streams[i];
		const bool is_kernel = !strcmp(v.traces[s->trace].path, "kernel");
		const unsigned kind = is_kernel ? 0 : s->head.stream_id ? 2 : 1;

		if (!is_kernel)
			assert_string_equal(v.traces[s->trace].path, "ust/uid/0/64-bit");
		n_seen[kind]++;
		expect_packets(&v, i, !kind ? kernel : kind == 1 ? user : other, 1, VIEW_RETRY);
	}
	for (unsigned kind = 0; kind < 3; kind++)
		assert_int_equal(n_seen[kind], 1);
	view_deinit(&v);
}

/* A rotation moves a chunk. Its streams end behind their last packets; others go on. */
static void test_rotation(void **state)
{
	static const uint64_t first[] = {110, 120}, second[] = {210}, third[] = {310};
	struct view v, late;

	add_packet(1, 100, 105, 110);
	set_watermark(50);
	begin_view(&v, true, 2);
	add_packet(1, 110, 115, 120);
	mkdirat(root, "archives", 0700);
	mkdirat(root, "archives/1-2-0", 0700);
	assert_int_equal(renameat(root, "kernel", root, "archives/1-2-0/kernel"), 0);
	make_dirs(".");
	append_to_file("kernel/metadata", metadata, strlen(metadata));
	add_packet(1, 200, 205, 210);
	set_watermark(60);
	assert_int_equal(view_look(&v), 0);
	assert_int_equal(announce_all(&v), 1);
	assert_int_equal(v.n_traces, 2);
	expect_packets(&v, 1, first, 2, VIEW_HUNG_UP);
	expect_packets(&v, 2, second, 1, VIEW_RETRY);
	assert_false(v.over);

	/* Archives that are there already are left out by a viewer of what comes from now on. */
	begin_view(&late, false, 2);
	assert_int_equal(late.n_traces, 1);
	expect_packets(&late, 1, second, 1, VIEW_RETRY);
	mkdirat(root, "archives/2-3-1", 0700);
	assert_int_equal(renameat(root, "kernel", root, "archives/2-3-1/kernel"), 0);
	add_packet_to("archives/2-3-1", 1, 300, 305, 310);
	set_watermark(70);
	expect_packets(&late, 1, third, 1, VIEW_HUNG_UP);
	assert_int_equal(late.n_traces, 1);
	view_deinit(&late);
	expect_packets(&v, 2, third, 1, VIEW_HUNG_UP);
	assert_int_equal(next_of(&v, 0).status, VIEW_INACTIVE); /* the beacon */
	view_deinit(&v);
	begin_view(&late, true, 3);
	view_deinit(&late);
}

/* A record's clock has 27 bits, which may have wrapped since the packet's begin, or all 64. */
static void test_clocks(void **state)
{
	const uint64_t begin = CLOCK_MASK - 9; /* of 10 units before it wraps */
	const uint64_t known = CLOCK_MASK + 100;
	struct {
		uint32_t word;
		uint8_t id;
		uint64_t clock;
	} __attribute__((packed)) record = {.word = 31};
	const struct {
		bool is_long;
		uint64_t first;
		bool is_served;
	} cases[] = {
		{false, begin, false},
		{false, known - 1, false},
		{false, known, true},
		{true, known - 1, false},
		{true, known, true},
		{true, known + (UINT64_C(1) << 40), true},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(cases); i++) {
		const uint64_t end = cases[i].first + 1;
		char name[16];
		struct view v;

		snprintf(name, sizeof(name), "clock_%zu", i);
		set_watermark(known);
		assert_int_equal(view_init(&v, root, true), 0);
		assert_int_equal(view_look(&v), 0);
		record.word = cases[i].is_long ? 31 : (uint32_t)(cases[i].first & CLOCK_MASK) << 5;
		record.clock = cases[i].is_long ? cases[i].first : 0;
		v.mark = known;
		put_packet("kernel", name, packet_of((unsigned)i, 0, begin, end), &record,
			sizeof(record));
		set_watermark(known + 1);
		assert_int_equal(view_look(&v), 0);
		announce_all(&v);
		assert_int_equal(next_of(&v, v.n_streams - 1).status,
			cases[i].is_served ? VIEW_OK : VIEW_RETRY);
		assert_int_equal(v.n_late, !cases[i].is_served);
		view_deinit(&v);
		remove_stream(name);
	}
}

/* A viewer reads any part of the packet, and nothing else. */
static void test_read(void **state)
{
	struct ky_ctf_packet p = packet_of(3, 0, 100, 200);
	uint8_t record[PACKET_SIZE - sizeof(p)];
	struct ky_buf b = {0};
	struct view_stream *s;
	struct view_index i;
	struct view v;

	for (size_t k = 0; k < sizeof(record); k++)
		record[k] = (uint8_t)k;
	memset(record, 0, 4);
	p.content_bits -= 64;
	p.stream_id = 5;
	p.n_events = 0;
	put_packet("kernel", "a", p, record, sizeof(record));
	p.timestamp_end = 300;
	p.events_discarded = 9;
	put_packet("kernel", "a", p, record, sizeof(record));
	set_watermark(1);
	begin_view(&v, true, 2);
	s = &v.streams[1];
	assert_int_equal(view_read(&v, s, 0, 1, &b), -EINVAL); /* no index was asked for */
	assert_int_equal(next_of(&v, 1).discarded, 0);
	i = next_of(&v, 1);
	assert_int_equal(i.offset, PACKET_SIZE);
	assert_int_equal(i.size, PACKET_SIZE);
	assert_int_equal(i.content_bits, (PACKET_SIZE - 8) * 8);
	assert_int_equal(i.discarded, 9);
	assert_int_equal(i.class_id, 5);
	assert_false(i.new_streams);
	assert_true(i.new_metadata);
	assert_int_equal(view_read(&v, s, PACKET_SIZE - 1, 2, &b), -EINVAL);
	assert_int_equal(view_read(&v, s, 2 * PACKET_SIZE, 1, &b), -EINVAL);
	assert_int_equal(view_read(&v, s, PACKET_SIZE, 0, &b), -EINVAL);
	assert_int_equal(b.len, 0);
	assert_int_equal(view_read(&v, s, PACKET_SIZE, UINT32_MAX, &b), PACKET_SIZE);
	p.timestamp_begin = 200; /* the viewer knows that nothing is before */
	assert_memory_equal(b.data, &p, sizeof(p));
	assert_memory_equal(b.data + sizeof(p), record, sizeof(record));
	b.len = 0;
	assert_int_equal(view_read(&v, s, PACKET_SIZE + sizeof(p) - 8, 16, &b), 16);
	assert_memory_equal(b.data, (const uint8_t *)&p + sizeof(p) - 8, 8);
	assert_memory_equal(b.data + 8, record, 8);
	assert_int_equal(view_read(&v, s, PACKET_SIZE + sizeof(p), 4, &b), 4);
	assert_memory_equal(b.data + 16, record, 4);
	ky_buf_deinit(&b);
	view_deinit(&v);
}

/* Nothing more is served of a stream after a packet that makes no sense. None begins with one. */
static void test_damage(void **state)
{
	static const uint64_t good[] = {200};
	const uint32_t none = 0;
	struct ky_ctf_packet p;
	struct view odd;
	char name[16];

	for (unsigned kind = 0; kind < 7; kind++) {
		struct view v;

		p = packet_of(1, 1, 200, 300);
		p.magic ^= kind == 0;
		p.content_bits += kind == 2 ? 8 : 0;
		p.content_bits = kind == 3 ? sizeof(p) * 8 - 8 : p.content_bits;
		p.stream_id += kind == 4;
		p.stream_instance_id += kind == 5;
		snprintf(name, sizeof(name), "damaged_%u", kind);
		put_packet("kernel", name, packet_of(1, 0, 100, 200), &none, 4);
		put_packet("kernel", name, p, &none, 4);
		if (kind == 1) /* another size than in the index */
			overwrite(
				name, PACKET_SIZE + offsetof(struct ky_ctf_packet, packet_bits), 1);
		put_packet("kernel", name, packet_of(1, 2, 300, 400), &none, 4);
		set_watermark(1 + kind);
		begin_view(&v, true, 2);
		if (kind == 6) {
			static const uint64_t all[] = {200, 300, 400};

			expect_packets(&v, 1, all, 3, VIEW_RETRY);
		} else {
			expect_packets(&v, 1, good, 1, VIEW_RETRY);
			assert_true(v.streams[1].damaged);
		}
		view_deinit(&v);
		remove_stream(name);
	}

	/* An index that cannot be read: here it is a directory. The session still ends. */
	put_packet("kernel", "unread_0", packet_of(1, 0, 100, 200), &none, 4);
	put_packet("kernel", "unread_1", packet_of(1, 1, 200, 300), &none, 4);
	set_watermark(50);
	begin_view(&odd, true, 2);
	unlinkat(root, "kernel/index/unread_0.kyx", 0);
	mkdirat(root, "kernel/index/unread_0.kyx", 0700);
	set_watermark(UINT64_MAX);
	assert_int_equal(next_of(&odd, 1).status, VIEW_HUNG_UP);
	assert_int_equal(odd.n_damaged, 1);
	assert_int_equal(next_of(&odd, 1).status, VIEW_HUNG_UP);
	assert_int_equal(odd.n_damaged, 1);
	view_deinit(&odd);
	unlinkat(root, "kernel/index/unread_0.kyx", AT_REMOVEDIR);
	remove_stream("unread_1");

	p = packet_of(2, 0, 100, 200);
	p.magic = 0;
	put_packet("kernel", "odd", p, &none, 4);
	set_watermark(100);
	begin_view(&odd, true, 0);
	assert_int_equal(odd.n_damaged, 1);
	put_packet("kernel", "good", packet_of(3, 0, 100, 200), &none, 4);
	set_watermark(101);
	assert_int_equal(view_look(&odd), 0);
	assert_int_equal(announce_all(&odd), 2);
	assert_int_equal(odd.n_damaged, 1);
	view_deinit(&odd);
}

/* Metadata of more than a reply's size comes in parts, each of whole declarations. */
static void test_long_metadata(void **state)
{
	static char line[1000];
	const size_t n_lines = VIEW_METADATA_MAX / sizeof(line) * 2;
	uint64_t total = strlen(metadata), got = 0;
	unsigned n_replies = 0;
	struct ky_buf b = {0}, all = {0};
	const uint32_t none = 0;
	uint32_t words[2];
	struct view v;
	int64_t n;

	memset(line, ' ', sizeof(line));
	memcpy(line + sizeof(line) - 4, "\n};\n", 4);
	for (size_t i = 0; i < n_lines; i++)
		ky_buf_append(&all, line, sizeof(line));
	append_to_file("kernel/metadata", all.data, all.len);
	total += all.len;
	ky_buf_deinit(&all);
	put_packet("kernel", "a", packet_of(1, 0, 100, 200), &none, 4);
	set_watermark(1);
	begin_view(&v, true, 2);
	while ((n = view_read_metadata(&v, &v.traces[0], &b)) > 0) {
		assert_int_equal(n, b.len);
		assert_in_range(n, 38, VIEW_METADATA_MAX + 37);
		memcpy(words, b.data, 4);
		assert_int_equal(words[0], 0x75d11d57);
		memcpy(words, b.data + 24, 8);
		assert_int_equal(words[0], n * 8);
		assert_int_equal(words[1], n * 8);
		assert_memory_equal(b.data + b.len - 4, "\n};\n", 4);
		got += (uint64_t)n - 37;
		b.len = 0;
		n_replies++;
	}
	assert_int_equal(n, 0);
	assert_int_equal(got, total);
	assert_int_equal(n_replies, 2);
	ky_buf_deinit(&b);
	view_deinit(&v);
}

/* A recording whose daemons were killed is over after a while; not while its sender may return. */
static void test_abandoned(void **state)
{
	const uint32_t none = 0;
	struct view v;

	put_packet("kernel", "a", packet_of(1, 0, 100, 200), &none, 4);
	set_watermark(1);
	begin_view(&v, true, 2);
	passed_s = 25;
	assert_int_equal(next_of(&v, 1).status, VIEW_OK);
	assert_int_equal(next_of(&v, 1).status, VIEW_RETRY);
	append_to_file(".recording", "x", 1);
	passed_s = 50;
	assert_int_equal(next_of(&v, 1).status, VIEW_RETRY);
	unlinkat(root, ".recording", 0);
	assert_int_equal(next_of(&v, 1).status, VIEW_RETRY);
	passed_s = 75;
	assert_int_equal(next_of(&v, 1).status, VIEW_RETRY);
	passed_s = 85;
	assert_int_equal(next_of(&v, 1).status, VIEW_HUNG_UP);
	assert_int_equal(next_of(&v, 0).status, VIEW_HUNG_UP);
	passed_s = 0;
	view_deinit(&v);
}

/* Sends a request of a viewer, which has these numbers. Returns the status that ends its reply. */
static uint32_t send_request(
	struct viewer *v, uint32_t command, uint64_t id, uint64_t more, uint32_t last)
{
	struct {
		uint64_t size;
		uint32_t command, version;
		uint64_t id, more;
		uint32_t last;
	} __attribute__((packed)) request = {.size = htobe64(20),
		.command = htobe32(command),
		.id = htobe64(id),
		.more = htobe64(more),
		.last = htobe32(last)};
	struct ky_buf reply = {0};
	const size_t at = command == NEXT_INDEX ? 56 : 0;
	uint32_t status;

	assert_int_equal(viewer_handle(v, (const uint8_t *)&request, sizeof(request), &reply), 0);
	assert_true(reply.len >= at + sizeof(status));
	memcpy(&status, reply.data + at, sizeof(status));
	ky_buf_deinit(&reply);
	return be32toh(status);
}

/* All that a viewer was not shown is counted, also of sessions that it does not view any more. */
static void test_losses(void **state)
{
	const uint64_t stream = UINT64_C(1) << 32 | 2; /* behind the beacon */
	const uint32_t none = 0;
	struct ky_ctf_packet p = packet_of(1, 1, 200, 300);
	struct live live = {.from_start = true};
	struct viewer v;

	put_packet("kernel", "a", packet_of(1, 0, 100, 200), &none, 4);
	p.magic = 0;
	put_packet("kernel", "a", p, &none, 4);
	set_watermark(CLOCK_MASK / 2);
	assert_int_equal(live_add(&live, "s", dup(root)), 0);
	viewer_init(&v, &live);
	for (unsigned n = 1; n < 4; n++) {
		assert_int_equal(send_request(&v, ATTACH, 1, 0, 1), 1);
		assert_int_equal(send_request(&v, NEXT_INDEX, stream, 0, 0), VIEW_OK);
		assert_int_equal(viewer_loss(&v).n_damaged, n - 1);
		assert_int_equal(send_request(&v, NEXT_INDEX, stream, 0, 0), VIEW_INACTIVE);
		assert_int_equal(viewer_loss(&v).n_damaged, n);
		assert_int_equal(send_request(&v, NEXT_INDEX, stream, 0, 0), VIEW_RETRY);
		if (n == 2) /* the next time, it attaches again without an end */
			continue;
		assert_int_equal(send_request(&v, DETACH, 1, 0, 0), 1);
		assert_int_equal(send_request(&v, DETACH, 1, 0, 0), 2);
		assert_int_equal(viewer_loss(&v).n_damaged, n);
	}
	remove_stream("a");

	put_packet("kernel", "b", packet_of(1, 0, 100, 200), &none, 4);
	assert_int_equal(send_request(&v, ATTACH, 1, 0, 1), 1);
	assert_int_equal(send_request(&v, NEXT_INDEX, stream, 0, 0), VIEW_OK);
	assert_int_equal(send_request(&v, NEXT_INDEX, stream, 0, 0), VIEW_INACTIVE);
	p = packet_of(1, 1, 200, 300);
	p.n_events = 7;
	put_packet("kernel", "b", p, &(const uint32_t){300 << 5}, 4);
	assert_int_equal(send_request(&v, NEXT_INDEX, stream, 0, 0), VIEW_RETRY);
	assert_int_equal(viewer_loss(&v).n_late, 7);
	assert_int_equal(send_request(&v, DETACH, 1, 0, 0), 1);
	assert_int_equal(viewer_loss(&v).n_late, 7);
	viewer_deinit(&v);
	live_deinit(&live);
}

/* Returns the lowest descriptor that is free. */
static int free_fd(void)
{
	int fd = dup(root);

	close(fd);
	return fd;
}

static int fresh_fd; /* free when the test begins, and when it ends */

static int begin_fresh(void **state)
{
	strcpy(fresh, "/tmp/kymo-view-XXXXXX");
	if (!mkdtemp(fresh))
		return -1;
	first_root = root;
	root = open(fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_dirs(".");
	append_to_file("kernel/metadata", metadata, strlen(metadata));
	fresh_fd = free_fd();
	return 0;
}

static int end_fresh(void **state)
{
	char command[64];

	passed_s = 0;
	if (free_fd() != fresh_fd)
		return -1;
	close(root);
	root = first_root;
	snprintf(command, sizeof(command), "rm -r %s", fresh);
	return system(command);
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
		cmocka_unit_test_setup_teardown(test_several_files, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_two_traces, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_rotation, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_clocks, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_read, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_damage, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_long_metadata, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_abandoned, begin_fresh, end_fresh),
		cmocka_unit_test_setup_teardown(test_losses, begin_fresh, end_fresh),
	};

	return cmocka_run_group_tests(tests, make_trace, remove_trace);
}
