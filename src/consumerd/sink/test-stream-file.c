/* SPDX-License-Identifier: MIT */
/* Packets are appended whole or not at all, whatever fails. A next consumer continues the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "consumerd/sink/stream-file.h"
#include "consumerd/sink/trace-dir.h"

static char top[] = "/tmp/kymo-test-XXXXXX";
static struct stream_place place = {.base = "chan", .n = 3};
static uint8_t payload[5000];

static int setup(void **state)
{
	strcpy(top + sizeof(top) - 7, "XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(trace_dir_make(top, false, &place.dir), 0);
	assert_int_equal(trace_dir_open_below(place.dir, "index", true, &place.index_dir), 0);
	signal(SIGXFSZ, SIG_IGN);
	return 0;
}

static int teardown(void **state)
{
	unlinkat(place.index_dir, "chan_3.kyx", 0);
	unlinkat(place.dir, "chan_3", 0);
	unlinkat(place.dir, "index", AT_REMOVEDIR);
	close(place.dir);
	close(place.index_dir);
	return rmdir(top);
}

static off_t size_of(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, 0) < 0 ? -1 : st.st_size;
}

static void expect_sizes(uint64_t stream, uint64_t n_packets)
{
	assert_int_equal(size_of(place.dir, "chan_3"), stream);
	assert_int_equal(size_of(place.index_dir, "chan_3.kyx"), ky_index_offset(n_packets));
}

static void expect_no_files(void)
{
	assert_int_equal(size_of(place.dir, "chan_3"), -1);
	assert_int_equal(size_of(place.index_dir, "chan_3.kyx"), -1);
}

static struct ky_ctf_packet header(uint32_t n)
{
	struct ky_ctf_packet p = {.stream_id = 9};

	ky_ctf_packet_finish(&p, n);
	return p;
}

static int append_packet(struct stream_file *f, uint32_t n)
{
	struct sink_packet p = {.header = header(n), .data = payload, .len = n};

	return stream_file_append(f, &place, &p, 1, false);
}

#define LARGE (1u << 18)
#define PAIR  2u
#define ROOM  ((uint32_t)sizeof(struct ky_ctf_packet))

/* Two blocks as they lie in a ring: on pages, with room for a header. */
static _Alignas(KY_CTF_PAGE) uint8_t blocks[PAIR][LARGE];

/* The packet of a whole block that holds len bytes, where the file ends with a page. */
static struct sink_packet block(unsigned int i, uint32_t len)
{
	struct sink_packet p = {.header = header(len), .data = blocks[i] + ROOM, .len = len};

	ky_ctf_packet_pad(&p.header, sink_padding(0, len));
	return p;
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit l = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_append(void **state)
{
	struct stream_file f;

	stream_file_init(&f);
	expect_no_files();
	assert_int_equal(append_packet(&f, 1000), 0);
	assert_int_equal(append_packet(&f, 0), 0);
	expect_sizes(2 * 128 + 1000, 2);
	stream_file_deinit(&f);
	/* a second consumer does not write into it */
	stream_file_init(&f);
	assert_int_equal(append_packet(&f, 10), -EEXIST);
	stream_file_deinit(&f);
}

static void test_cut_off(void **state)
{
	struct stream_file f;

	stream_file_init(&f);
	assert_int_equal(append_packet(&f, 1000), 0);
	limit_file_size(3000);
	assert_int_equal(append_packet(&f, 5000), -EFBIG);
	expect_sizes(1128, 1);
	assert_int_equal(append_packet(&f, 1000), 0);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(append_packet(&f, 5000), 0);
	expect_sizes(3 * 128 + 7000, 3);
	stream_file_deinit(&f);
}

/* If the first packet fails, there is no file, and another try can succeed. */
static void test_first_fails(void **state)
{
	struct stream_place no_index = place;
	struct sink_packet p = {.header = header(10), .data = payload, .len = 10};
	struct stream_file f;

	stream_file_init(&f);
	limit_file_size(64);
	assert_int_equal(append_packet(&f, 1000), -EFBIG);
	limit_file_size(RLIM_INFINITY);
	expect_no_files();
	no_index.index_dir = -1;
	assert_int_equal(stream_file_append(&f, &no_index, &p, 1, false), -EBADF);
	expect_no_files();
	assert_int_equal(append_packet(&f, 1000), 0);
	expect_sizes(1128, 1);
	stream_file_deinit(&f);
}

/* If the partial file could not be removed, the next try removes it. */
static void test_first_fails_twice(void **state)
{
	struct stream_place elsewhere = place;
	struct sink_packet p = {.header = header(10), .data = payload, .len = 10};
	struct stream_file f;

	stream_file_init(&f);
	assert_int_equal(append_packet(&f, 1000), 0);
	f.n_packets = 0;
	f.size = 0;
	elsewhere.dir = elsewhere.index_dir = -1;
	limit_file_size(0);
	assert_int_equal(stream_file_append(&f, &elsewhere, &p, 1, false), -EFBIG);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(append_packet(&f, 500), 0);
	expect_sizes(628, 1);
	stream_file_deinit(&f);
}

static void count_packet(void *context, const struct ky_ctf_packet *p)
{
	++*(unsigned int *)context;
}

static int resume(struct stream_file *f, uint32_t stream_id, unsigned int *n)
{
	struct ky_ctf_packet like = header(0);

	like.stream_id = stream_id;
	*n = 0;
	stream_file_init(f);
	return stream_file_resume(f, &place, &like, count_packet, n);
}

static void test_resume(void **state)
{
	struct stream_file f;
	unsigned int n;

	assert_int_equal(resume(&f, 9, &n), 0);
	assert_int_equal(f.fd, -1);
	assert_int_equal(append_packet(&f, 1000), 0);
	assert_int_equal(append_packet(&f, 2000), 0);
	assert_int_equal(append_packet(&f, 3000), 0);
	assert_int_equal(ftruncate(f.fd, 128 + 1000 + 128 + 1999), 0);
	stream_file_deinit(&f);
	assert_int_equal(resume(&f, 9, &n), 0);
	assert_int_equal(n, 1);
	expect_sizes(1128, 1);
	/* continues behind it */
	assert_int_equal(append_packet(&f, 50), 0);
	expect_sizes(1128 + 178, 2);
	stream_file_deinit(&f);
	/* the file of another stream is left alone */
	assert_int_equal(resume(&f, 8, &n), -EBADMSG);
	expect_sizes(1128 + 178, 2);
	stream_file_deinit(&f);
	/* not even the first packet is whole */
	assert_int_equal(resume(&f, 9, &n), 0);
	assert_int_equal(ftruncate(f.fd, 500), 0);
	stream_file_deinit(&f);
	assert_int_equal(resume(&f, 9, &n), 0);
	assert_int_equal(n, 0);
	expect_no_files();
}

static bool refuse_direct;

/* Replaces the C library's: simulates file systems that accept the flag and refuse the writes. */
ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	if (refuse_direct && fcntl(fd, F_GETFL) & O_DIRECT) {
		errno = EINVAL;
		return -1;
	}
	return syscall(SYS_pwritev, fd, iov, n, at, 0);
}

static void read_back(uint64_t at, const uint8_t *records, uint32_t len, uint64_t end)
{
	static uint8_t is[LARGE];
	int fd = openat(place.dir, "chan_3", O_RDONLY);

	assert_true(fd >= 0 && end - at <= sizeof(is));
	assert_int_equal(pread(fd, is, end - at, (off_t)at), end - at);
	assert_memory_equal(is + ROOM, records, len);
	for (uint64_t i = ROOM + len; i < end - at; i++)
		assert_int_equal(is[i], 0);
	close(fd);
}

/* Returns true if the test's file system supports O_DIRECT. */
static bool knows_direct(const struct stream_file *f)
{
	int flags = fcntl(f->fd, F_GETFL);
	bool yes = fcntl(f->fd, F_SETFL, flags | O_DIRECT) == 0;

	assert_int_equal(fcntl(f->fd, F_SETFL, flags), 0);
	return yes;
}

/* Whole blocks bypass the page cache, other data does not; the file is complete. */
static void test_direct(void **state)
{
	static const uint32_t lengths[] = {
		LARGE - ROOM, LARGE - ROOM - 32, LARGE - 5000, 3 * 4096, 4096 - ROOM, 4097 - ROOM};
	struct sink_packet pair[PAIR];
	struct stream_file f;
	uint64_t at;

	for (size_t i = 0; i < sizeof(blocks); i++)
		((uint8_t *)blocks)[i] = (uint8_t)(i * 7 + i / 4096);
	for (size_t i = 0; i < KY_ARRAY_SIZE(lengths); i++) {
		stream_file_init(&f);
		pair[0] = block(0, lengths[i]);
		pair[1] = block(1, LARGE - ROOM);
		at = pair[0].header.packet_bits / 8;
		assert_true(stream_file_may_be_direct(&f, pair, PAIR));
		assert_int_equal(stream_file_append(&f, &place, pair, PAIR, true), 0);
		assert_true(f.direct || !knows_direct(&f));
		expect_sizes(at + LARGE, PAIR);
		read_back(0, pair[0].data, lengths[i], at);
		read_back(at, pair[1].data, LARGE - ROOM, at + LARGE);
		/* part of a block; then the file does not end with a page */
		assert_int_equal(append_packet(&f, 100), 0);
		assert_false(f.direct);
		assert_false(stream_file_may_be_direct(&f, pair, PAIR));
		assert_int_equal(stream_file_append(&f, &place, pair, PAIR, true), 0);
		assert_false(f.direct);
		expect_sizes(2 * (at + LARGE) + ROOM + 100, 2 * PAIR + 1);
		read_back(at + LARGE, payload, 100, at + LARGE + ROOM + 100);
		read_back(at + LARGE + ROOM + 100, pair[0].data, lengths[i],
			2 * at + LARGE + ROOM + 100);
		stream_file_deinit(&f);
		unlinkat(place.index_dir, "chan_3.kyx", 0);
		unlinkat(place.dir, "chan_3", 0);
	}
	pair[0].data++; /* not page on page in memory */
	assert_false(stream_file_may_be_direct(&f, pair, PAIR));
}

static void test_direct_refused(void **state)
{
	struct sink_packet pair[PAIR] = {block(0, LARGE - ROOM), block(1, LARGE - ROOM)};
	struct stream_file f;

	stream_file_init(&f);
	refuse_direct = true;
	assert_int_equal(stream_file_append(&f, &place, pair, PAIR, true), 0);
	refuse_direct = false;
	assert_true(f.no_direct && !f.direct);
	assert_false(stream_file_may_be_direct(&f, pair, PAIR));
	assert_int_equal(stream_file_append(&f, &place, pair, PAIR, true), 0);
	assert_false(f.direct);
	expect_sizes(2 * PAIR * LARGE, 2 * PAIR);
	read_back(3 * LARGE, pair[1].data, LARGE - ROOM, 4 * LARGE);
	stream_file_deinit(&f);
}

/* After a limit in the middle of a batch, nothing of it stays, for both ways of writing. */
static void test_batch_cut_off(void **state)
{
	struct sink_packet pair[PAIR] = {block(0, LARGE - ROOM), block(1, LARGE - ROOM)};
	struct stream_file f;

	stream_file_init(&f);
	for (int direct = 0; direct < 2; direct++) {
		uint64_t n = f.n_packets;

		assert_int_equal(stream_file_append(&f, &place, pair, PAIR, direct), 0);
		limit_file_size((n + PAIR) * LARGE + LARGE + 8192);
		assert_int_equal(stream_file_append(&f, &place, pair, PAIR, direct), -EFBIG);
		expect_sizes((n + PAIR) * LARGE, n + PAIR);
		assert_int_equal(stream_file_append(&f, &place, pair, 1, direct), 0);
		limit_file_size(RLIM_INFINITY);
		expect_sizes((n + PAIR + 1) * LARGE, n + PAIR + 1);
	}
	stream_file_deinit(&f);
}

/* Walks over the packets as a reader does, to the end of the file. Returns their number. */
static unsigned int walk_packets(void)
{
	struct ky_ctf_packet p;
	off_t size = size_of(place.dir, "chan_3"), at = 0;
	unsigned int n = 0;
	int fd = openat(place.dir, "chan_3", O_RDONLY);

	assert_true(fd >= 0);
	for (; at < size; n++) {
		assert_int_equal(pread(fd, &p, sizeof(p), at), sizeof(p));
		assert_int_equal(p.magic, KY_CTF_MAGIC);
		assert_int_equal(p.seq_num, n);
		at += (off_t)(p.packet_bits / 8);
	}
	assert_int_equal(at, size);
	close(fd);
	return n;
}

#define N_A_LIFE 40u

/* Appends packets until it is killed. Ends before it fills the disk. */
static void append_many(void)
{
	struct sink_packet packets[PAIR];
	struct stream_file f;
	unsigned int n;

	if (resume(&f, 9, &n) < 0)
		_exit(1);
	for (unsigned int i = 0; i < PAIR; i++)
		packets[i] = block(i, LARGE - ROOM);
	while (f.n_packets < n + N_A_LIFE) {
		for (unsigned int i = 0; i < PAIR; i++)
			packets[i].header.seq_num = f.n_packets + i;
		if (stream_file_append(&f, &place, packets, PAIR, f.n_packets / 16 % 2) < 0)
			_exit(1);
	}
	_exit(0);
}

/*
 * A writer is killed at any moment, mostly during a write. Complete packets stay, and the next
 * writer continues behind them.
 */
static void test_killed(void **state)
{
	unsigned int n_before = 0, n;
	struct stream_file f;
	siginfo_t info = {0};
	int status;

	for (int life = 0; life < 30; life++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			append_many();
		while (size_of(place.dir, "chan_3") < (off_t)(n_before + 2) * LARGE &&
			waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
			!info.si_pid)
			;
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
		assert_int_equal(resume(&f, 9, &n), 0);
		assert_int_equal(f.n_packets, n);
		assert_true(n >= n_before);
		assert_int_equal(walk_packets(), n);
		expect_sizes(f.size, n);
		n_before = n;
		stream_file_deinit(&f);
	}
}

static void limit_files(rlim_t n)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

#define N_FILES 100u

static int append_to(struct stream_file *f, uint32_t n)
{
	struct sink_packet p = {.header = header(40), .data = payload, .len = 40};
	struct stream_place at = place;

	at.n = n;
	return stream_file_append(f, &at, &p, 1, false);
}

/* Removes a file after it checked its number of packets. */
static void remove_file(uint32_t n, uint64_t n_packets)
{
	char name[32];

	snprintf(name, sizeof(name), "chan_%u", n);
	assert_int_equal(size_of(place.dir, name), n_packets * (ROOM + 40));
	assert_int_equal(unlinkat(place.dir, name, 0), 0);
	snprintf(name, sizeof(name), "chan_%u.kyx", n);
	assert_int_equal(size_of(place.index_dir, name), ky_index_offset(n_packets));
	assert_int_equal(unlinkat(place.index_dir, name, 0), 0);
}

/*
 * There are more files than may be open. Each is written as usual, and a quarter of the descriptors
 * stays free.
 */
static void test_few_descriptors(void **state)
{
	static struct stream_file files[N_FILES];
	struct rlimit before;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit_files(64);
	for (uint32_t i = 0; i < N_FILES; i++)
		stream_file_init(&files[i]);
	for (unsigned int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < N_FILES; i++)
			assert_int_equal(append_to(&files[i], i), 0);
		fd = dup(0);
		assert_true(fd >= 0 && fd < 50); /* a file has two */
		close(fd);
		/* the files written last are open; a write to them closes no others */
		for (uint32_t i = N_FILES - 10; i < N_FILES; i++)
			assert_true(files[i].fd >= 0);
	}
	/* a removed file is not made again, and others are written */
	remove_file(0, 3);
	assert_int_equal(append_to(&files[0], 0), -ENOENT);
	assert_int_equal(append_to(&files[1], 1), 0);
	for (uint32_t i = 0; i < N_FILES; i++)
		stream_file_deinit(&files[i]);
	for (uint32_t i = 1; i < N_FILES; i++)
		remove_file(i, i == 1 ? 4 : 3);
	limit_files(before.rlim_cur);
}

/* A write that failed leaves the file as it was, although it was closed and opened again. */
static void test_few_descriptors_and_no_room(void **state)
{
	struct stream_file f;

	stream_file_init(&f);
	assert_int_equal(append_packet(&f, 1000), 0);
	stream_file_deinit(&f);
	limit_file_size(3000);
	assert_int_equal(append_packet(&f, 5000), -EFBIG);
	stream_file_deinit(&f);
	expect_sizes(1128, 1);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(append_packet(&f, 5000), 0);
	expect_sizes(2 * 128 + 6000, 2);
	stream_file_deinit(&f);
}

static void test_names(void **state)
{
	int fd;

	assert_int_equal(trace_dir_open_below(place.dir, "../x", true, &fd), -EINVAL);
	assert_int_equal(trace_dir_open_below(place.dir, "a/../x", true, &fd), -EINVAL);
	assert_int_equal(trace_dir_open_below(place.dir, "/tmp", true, &fd), -EINVAL);
	assert_int_equal(trace_dir_open_below(place.dir, "a//b", true, &fd), -EINVAL);
	assert_int_equal(trace_dir_open_below(place.dir, "", true, &fd), -EINVAL);
	assert_int_equal(trace_dir_open_below(place.dir, "b/c", false, &fd), -ENOENT);
	assert_int_equal(unlinkat(place.dir, "a", AT_REMOVEDIR), 0);
	assert_int_equal(trace_dir_make("relative/path", false, &fd), -EINVAL);
	assert_int_equal(trace_dir_make("/", false, &fd), -EINVAL);
	assert_int_equal(trace_dir_make(top, false, &fd), -ENOTEMPTY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_append, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_fails_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resume, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batch_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_descriptors_and_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
