/* SPDX-License-Identifier: MIT */
/* Packets are appended whole or not at all, whatever fails; and what was left is gone on with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "consumerd/stream-file.h"
#include "consumerd/trace-dir.h"

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
	struct ky_ctf_packet p = {.stream_id = 9, .position_end = n};

	ky_ctf_packet_finish(&p, n);
	return p;
}

static int append(struct stream_file *f, uint32_t n)
{
	struct ky_ctf_packet p = header(n);

	return stream_file_append(f, &place, &p, payload, n);
}

static void limit(rlim_t bytes)
{
	struct rlimit l = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_append(void **state)
{
	struct stream_file f;

	stream_file_init(&f);
	expect_no_files();
	assert_int_equal(append(&f, 1000), 0);
	assert_int_equal(append(&f, 0), 0);
	expect_sizes(2 * 128 + 1000, 2);
	stream_file_deinit(&f);
	/* a second consumer does not write into it */
	assert_int_equal(append(&f, 10), -EEXIST);
	stream_file_deinit(&f);
}

static void test_cut_off(void **state)
{
	struct stream_file f;

	stream_file_init(&f);
	assert_int_equal(append(&f, 1000), 0);
	limit(3000);
	assert_int_equal(append(&f, 5000), -EFBIG);
	expect_sizes(1128, 1);
	assert_int_equal(append(&f, 1000), 0);
	limit(RLIM_INFINITY);
	assert_int_equal(append(&f, 5000), 0);
	expect_sizes(3 * 128 + 7000, 3);
	stream_file_deinit(&f);
}

/* The first packet fails: there is no file, and it may be tried again. */
static void test_first_fails(void **state)
{
	struct stream_place no_index = place;
	struct ky_ctf_packet p = header(10);
	struct stream_file f;

	stream_file_init(&f);
	limit(64);
	assert_int_equal(append(&f, 1000), -EFBIG);
	limit(RLIM_INFINITY);
	expect_no_files();
	no_index.index_dir = -1;
	assert_int_equal(stream_file_append(&f, &no_index, &p, payload, 10), -EBADF);
	expect_no_files();
	assert_int_equal(append(&f, 1000), 0);
	expect_sizes(1128, 1);
	stream_file_deinit(&f);
}

static void count(void *context, const struct ky_ctf_packet *p)
{
	++*(unsigned int *)context;
}

static int resume(struct stream_file *f, uint32_t stream_id, unsigned int *n)
{
	struct ky_ctf_packet like = header(0);

	like.stream_id = stream_id;
	*n = 0;
	stream_file_init(f);
	return stream_file_resume(f, &place, &like, count, n);
}

static void test_resume(void **state)
{
	struct stream_file f;
	unsigned int n;

	assert_int_equal(resume(&f, 9, &n), 0);
	assert_int_equal(f.fd, -1);
	assert_int_equal(append(&f, 1000), 0);
	assert_int_equal(append(&f, 2000), 0);
	assert_int_equal(append(&f, 3000), 0);
	assert_int_equal(ftruncate(f.fd, 128 + 1000 + 128 + 1999), 0);
	stream_file_deinit(&f);
	assert_int_equal(resume(&f, 9, &n), 0);
	assert_int_equal(n, 1);
	expect_sizes(1128, 1);
	/* goes on behind it */
	assert_int_equal(append(&f, 50), 0);
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

/* Walks over the packets as a reader does, to the very end of the file; returns how many there are.
 */
static unsigned int walk(void)
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

#define LARGE	 (1u << 18)
#define N_A_LIFE 40u

/* Ends well before it has filled anybody's disk, should nobody kill it in time. */
static void append_many(void)
{
	static uint8_t large[LARGE];
	struct ky_ctf_packet p = header(sizeof(large));
	struct stream_file f;
	unsigned int n;

	if (resume(&f, 9, &n) < 0)
		_exit(1);
	while (f.n_packets < n + N_A_LIFE) {
		p.seq_num = f.n_packets;
		if (stream_file_append(&f, &place, &p, large, sizeof(large)) < 0)
			_exit(1);
	}
	_exit(0);
}

/* Killed at any moment, mostly in the midst of a write: what was whole stays, and is gone on
 * behind. */
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
		assert_int_equal(walk(), n);
		expect_sizes(f.size, n);
		n_before = n;
		stream_file_deinit(&f);
	}
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
		cmocka_unit_test_setup_teardown(test_resume, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
