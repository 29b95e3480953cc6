/* SPDX-License-Identifier: MIT */
/*
 * Both ends of a shipped trace, over a socket pair. Receivers are killed before each call that
 * changes a file, or have a full disk from that call on.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctf/index.h"
#include "ship/files.h"
#include "ship/packer.h"
#include "ship/receiver.h"
#include "ship/sender.h"

#define SEED   1
#define RAW_AT 12 /* the length without codec in a head */
#define STREAM "ust/uid/0/channel0_0"
#define CRC_AT 36 /* the checksum of what is before it in a head */

static char top[64];

/* --- calls that change files --- */

enum fate { FATE_NONE, FATE_KILLED, FATE_FULL };

static enum fate fate;
static long calls_left;

/* Returns false if the disk is full. */
static bool may_go_on(void)
{
	if (fate == FATE_NONE || calls_left-- > 0)
		return true;
	if (fate == FATE_KILLED)
		raise(SIGKILL);
	return false;
}

ssize_t __real_pwrite64(int fd, const void *p, size_t n, off64_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off64_t at);
int __real_ftruncate64(int fd, off64_t size);
int __wrap_ftruncate64(int fd, off64_t size);
int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __real_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);

/* Tests of many connections do not wait for the disk. */
int __wrap_fdatasync(int fd);
int __wrap_syncfs(int fd);

int __wrap_fdatasync(int fd)
{
	return 0;
}

int __wrap_syncfs(int fd)
{
	return 0;
}

/* A part of the bytes is written before the end. */
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	const bool last = fate != FATE_NONE && calls_left == 0;

	if (last && n > 1)
		__real_pwrite64(fd, p, n / 2, at);
	if (may_go_on())
		return __real_pwrite64(fd, p, n, at);
	errno = ENOSPC;
	return -1;
}

int __wrap_ftruncate64(int fd, off64_t size)
{
	if (fate == FATE_KILLED)
		may_go_on();
	return __real_ftruncate64(fd, size);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
	if (fate == FATE_KILLED)
		may_go_on();
	return __real_renameat(a, from, b, to);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	if (may_go_on())
		return __real_mkdirat(dir, path, mode);
	errno = ENOSPC;
	return -1;
}

/* --- a trace that grows --- */

struct made {
	int dir, stream, index, metadata;
	uint64_t size, n;
	unsigned seed;
};

static void make_trace(struct made *m, const char *name)
{
	char path[128];
	const char *const dirs[] = {"", "/ust", "/ust/uid", "/ust/uid/0", "/ust/uid/0/index"};
	const struct ky_index_header h = {KY_INDEX_MAGIC, KY_INDEX_VERSION, 48, 0};

	*m = (struct made){.seed = SEED};
	for (size_t i = 0; i < KY_ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", top, name, dirs[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	snprintf(path, sizeof(path), "%s/%s", top, name);
	m->dir = open(path, O_RDONLY | O_DIRECTORY);
	m->stream = openat(m->dir, "ust/uid/0/channel0_0", O_RDWR | O_CREAT, 0644);
	m->index = openat(m->dir, "ust/uid/0/index/channel0_0.kyx", O_RDWR | O_CREAT, 0644);
	m->metadata = openat(m->dir, "ust/uid/0/metadata", O_RDWR | O_CREAT | O_APPEND, 0644);
	assert_true(m->dir >= 0 && m->stream >= 0 && m->index >= 0 && m->metadata >= 0);
	assert_int_equal(write(m->index, &h, sizeof(h)), sizeof(h));
}

static void free_trace(struct made *m)
{
	close(m->dir);
	close(m->stream);
	close(m->index);
	close(m->metadata);
}

static void add_packet(struct made *m, size_t size)
{
	struct ky_index_entry e = {.offset = m->size, .size = size, .n_events = 1};
	char text[64], *bytes = malloc(size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)rand_r(&m->seed);
	snprintf(text, sizeof(text), "event {\n\tid = %llu;\n};\n", (unsigned long long)m->n);
	assert_int_equal(write(m->metadata, text, strlen(text)), strlen(text));
	assert_int_equal(write(m->stream, bytes, size), size);
	assert_int_equal(write(m->index, &e, sizeof(e)), sizeof(e));
	m->size += size;
	m->n++;
	free(bytes);
}

/* --- both ends --- */

static pid_t start_receiver(int fd, const char *far, enum fate f, long calls)
{
	pid_t pid = fork();
	struct receiver r;
	int ret;

	if (pid)
		return pid;
	fate = f;
	calls_left = calls;
	receiver_init(&r, open(far, O_RDONLY | O_DIRECTORY));
	r.in = r.out = fd;
	ret = receiver_serve(&r);
	_exit(ret > 0 ? 0 : 1);
}

/* One connection. Returns the sender's result. */
static int connection(struct sender *s, const char *far, enum fate f, long calls)
{
	int pair[2], ret, status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = start_receiver(pair[1], far, f, calls);
	close(pair[1]);
	ret = sender_run(s, pair[0], -1);
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return ret;
}

static void make_far(char far[128], const char *name)
{
	snprintf(far, 128, "%s/%s", top, name);
	assert_int_equal(mkdir(far, 0755), 0);
}

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

/* --- a spool --- */

/* The packets of a stream as they were recorded. */
struct kept {
	struct ky_ctf_packet head;
	size_t size;
	uint8_t *bytes;
};

static void add_whole_packet(struct made *m, struct kept *k, size_t size)
{
	struct ky_ctf_packet h = {.magic = KY_CTF_MAGIC,
		.content_bits = 8 * (size - 7),
		.packet_bits = 8 * size,
		.n_events = 1 + m->n % 5,
		.events_discarded = m->n / 3,
		.seq_num = m->n};
	const struct ky_index_entry e = {.offset = m->size,
		.size = size,
		.n_events = h.n_events,
		.discarded = h.events_discarded,
		.timestamp_end = m->n};

	*k = (struct kept){.head = h, .size = size, .bytes = malloc(size)};
	for (size_t i = 0; i < size; i++)
		k->bytes[i] = (uint8_t)(1 + rand_r(&m->seed) % 255);
	memcpy(k->bytes, &h, sizeof(h));
	assert_int_equal(write(m->stream, k->bytes, size), size);
	assert_int_equal(write(m->index, &e, sizeof(e)), sizeof(e));
	m->size += size;
	m->n++;
}

/*
 * Each packet arrived as it was recorded, or empty, and then its events count as discarded from
 * there on. Returns the number of events that expired.
 */
static uint64_t check_spooled(const struct made *m, const struct kept *kept, const char *far)
{
	char path[256];
	uint64_t at = 0, expired = 0;
	int stream, index;

	snprintf(path, sizeof(path), "%s/t/ust/uid/0/channel0_0", far);
	stream = open(path, O_RDONLY);
	snprintf(path, sizeof(path), "%s/t/ust/uid/0/index/channel0_0.kyx", far);
	index = open(path, O_RDONLY);
	assert_true(stream >= 0 && index >= 0);
	for (uint64_t i = 0; i < m->n; i++) {
		const struct kept *k = &kept[i];
		uint8_t *bytes = malloc(k->size);
		struct ky_index_entry e;
		struct ky_ctf_packet h;

		assert_int_equal(pread(stream, bytes, k->size, (off_t)at), k->size);
		assert_int_equal(pread(index, &e, sizeof(e), (off_t)ky_index_offset(i)), sizeof(e));
		memcpy(&h, bytes, sizeof(h));
		if (h.content_bits == 8 * sizeof(h)) {
			expired += k->head.n_events;
			assert_int_equal(h.n_events, 0);
		} else {
			assert_int_equal(h.n_events, k->head.n_events);
			assert_int_equal(h.content_bits, k->head.content_bits);
			assert_memory_equal(
				bytes + sizeof(h), k->bytes + sizeof(h), k->size - sizeof(h));
		}
		assert_int_equal(h.packet_bits, k->head.packet_bits);
		assert_int_equal(h.events_discarded, k->head.events_discarded + expired);
		assert_int_equal(e.discarded, h.events_discarded);
		assert_int_equal(e.n_events, h.n_events);
		assert_int_equal(e.offset, at);
		at += k->size;
		free(bytes);
	}
	close(stream);
	close(index);
	return expired;
}

static uint64_t space_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/*
 * Both ends are killed, and the other end's disk is full, at any call, while packets come and
 * expire: each event arrives or is counted. Returns the number of those that expired.
 */
static uint64_t spool_once(unsigned seed)
{
	enum { N = 60, LONG_ONE = 7 };
	static const size_t sizes[] = {500, 8192, 40000, 200000};
	struct kept kept[N];
	char far[128], near[32];
	uint64_t expired;
	bool lives = false;
	struct made m;
	struct sender s;

	snprintf(near, sizeof(near), "spool-%u", seed);
	make_trace(&m, near);
	snprintf(near, sizeof(near), "far-spool-%u", seed);
	make_far(far, near);
	m.seed = seed;
	add_whole_packet(&m, &kept[0], 3000);
	while (m.n < N) {
		for (int n = rand_r(&m.seed) % 4; n && m.n < N; n--)
			add_whole_packet(&m, &kept[m.n],
				m.n == LONG_ONE ? SEGMENT_PAYLOAD_MAX + 50000
						: sizes[rand_r(&m.seed) % 4]);
		if (!lives)
			assert_int_equal(sender_init(&s, m.dir, "t", true), 0);
		s.spool_max = 100000;
		if (rand_r(&m.seed) % 2)
			assert_int_equal(sender_limit(&s), 0);
		else
			connection(&s, far, rand_r(&m.seed) % 3 ? FATE_KILLED : FATE_FULL,
				rand_r(&m.seed) % 12);
		lives = rand_r(&m.seed) % 2;
		if (!lives)
			sender_deinit(&s);
	}
	if (!lives)
		assert_int_equal(sender_init(&s, m.dir, "t", true), 0);
	s.spool_max = 100000;
	assert_int_equal(connection(&s, far, FATE_NONE, 0), 0);
	expired = check_spooled(&m, kept, far);
	assert_int_equal(s.n_expired, expired);
	assert_true(space_of(m.stream) <= N * 3 * 4096);
	sender_deinit(&s);
	for (int i = 0; i < N; i++)
		free(kept[i].bytes);
	free_trace(&m);
	return expired;
}

static void test_spool(void **state)
{
	int ret, dir = open(top, O_RDONLY | O_DIRECTORY);
	uint64_t expired = 0;

	ret = spool_mark(dir, "exec:true");
	assert_true(!ret || ret == -EOPNOTSUPP);
	if (!ret) {
		assert_int_equal(spool_mark(dir, "exec:true"), 0);
		assert_int_equal(spool_mark(dir, "exec:false"), -EEXIST);
	}
	close(dir);
	if (ret)
		skip();
	for (unsigned seed = 1; seed <= 6; seed++)
		expired += spool_once(seed);
	assert_true(expired);
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

/* --- hostile ends --- */

static int handle_with_crc(struct receiver *r, struct segment s, const void *payload)
{
	s.raw = s.length;
	s.crc = segment_crc(payload, s.length);
	return receiver_handle(r, &s, payload);
}

static void hello(struct receiver *r, const char *far)
{
	receiver_init(r, open(far, O_RDONLY | O_DIRECTORY));
	assert_int_equal(handle_with_crc(r, (struct segment){.type = SEGMENT_HELLO, .length = 17},
				 "0123456789abcdeft"),
		0);
}

static void bye(struct receiver *r)
{
	close(r->dir);
	receiver_deinit(r);
}

/* Files that somebody else has put into a recording, with paths of any length, are not reported. */
static void test_long_path(void **state)
{
	char far[128], path[1200], name[251];
	struct receiver r;

	make_far(far, "far-long");
	hello(&r, far);
	bye(&r);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/t", far);
	for (int i = 0; i < 4; i++) {
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", name);
		assert_int_equal(i < 3 ? mkdir(path, 0700) : mknod(path, S_IFREG | 0600, 0), 0);
	}
	hello(&r, far);
	assert_int_equal(r.size, 0);
	bye(&r);
}

/* The receiver gets a segment with this text as its payload. Returns its result. */
static int send_text(
	struct receiver *r, uint8_t type, uint16_t file, uint64_t offset, const char *text)
{
	return handle_with_crc(r,
		(struct segment){.type = type,
			.length = (uint32_t)strlen(text),
			.file = file,
			.offset = offset},
		text);
}

static void test_hostile_hello(void **state)
{
	struct receiver r, other;
	char far[128];

	make_far(far, "far-hello");
	receiver_init(&r, open(far, O_RDONLY | O_DIRECTORY));
	assert_int_equal(send_text(&r, SEGMENT_END, 0, 0, ""), -EPROTO);
	assert_int_equal(send_text(&r, SEGMENT_HELLO, 0, 0, "0123456789abcdef.t"), -EPROTO);
	assert_int_equal(send_text(&r, SEGMENT_HELLO, 0, 0, "0123456789abcdef/t"), -EPROTO);
	bye(&r);
	hello(&r, far);
	assert_int_equal(send_text(&r, SEGMENT_HELLO, 0, 0, "0123456789abcdeft"), -EPROTO);
	assert_int_equal(send_text(&r, SEGMENT_ACK, 0, 0, ""), -EPROTO);
	/* A second receiver of the recording is refused while the first one exists. */
	receiver_init(&other, r.dir);
	assert_int_equal(send_text(&other, SEGMENT_HELLO, 0, 0, "0123456789abcdeft"), -EBUSY);
	assert_non_null(strstr(other.why, "it ends within 20 s"));
	receiver_deinit(&other);
	bye(&r);
}

static void test_hostile_paths(void **state)
{
	static const char *const bad[] = {"/etc/x", "../x", "a/../x", "a//b", "", ".recording",
		"a/.b", "a/", "a b", "a\nb", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q",
		"a/b/c/d/e/f/g/h/i/j/k/l/m/n", "archives/x", "a/damaged/x"};
	struct receiver r;
	char far[128];

	make_far(far, "far-paths");
	hello(&r, far);
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++)
		assert_int_equal(send_text(&r, SEGMENT_FILE, 0, 0, bad[i]), -EPROTO);
	/* Files are numbered in their order, and have no data before. */
	assert_int_equal(send_text(&r, SEGMENT_FILE, 1, 0, "a/b"), -EPROTO);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 0, "abc"), -EPROTO);
	bye(&r);
	assert_int_equal(access("/etc/x", F_OK), -1);
}

static void test_hostile_data(void **state)
{
	const struct segment damaged = {.type = SEGMENT_DATA, .length = 3, .raw = 3, .offset = 5};
	struct receiver r;
	char far[128];

	make_far(far, "far-data");
	hello(&r, far);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 0, 0, "a/b"), 0);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 0, "abc"), 0);
	/* Repeated, overlapping, with a gap, damaged. */
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 0, "xxx"), 0);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 2, "xde"), 0);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 6, "xde"), -EPROTO);
	assert_int_equal(receiver_handle(&r, &damaged, "abc"), -EBADMSG);
	r.max = 6;
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 5, "fg"), -EDQUOT);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 5, "f"), 0);
	/* Data without bytes, and watermarks that are none. */
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 6, ""), -EPROTO);
	assert_int_equal(send_text(&r, SEGMENT_WATERMARK, 0, 0, "abc"), -EPROTO);
	bye(&r);
}

/* Somebody puts symbolic links into the recording, and a FIFO. */
static void test_hostile_files(void **state)
{
	char far[128], path[256];
	struct receiver r;

	make_far(far, "far-files");
	hello(&r, far);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 0, 0, "a/b"), 0);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 0, "abc"), 0);
	snprintf(path, sizeof(path), "%s/t/link", far);
	assert_int_equal(symlink("a", path), 0);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 1, 0, "link/x"), 0);
	assert_true(send_text(&r, SEGMENT_DATA, 1, 0, "x") < 0);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 2, 0, "link"), 0);
	assert_true(send_text(&r, SEGMENT_DATA, 2, 0, "x") < 0);
	snprintf(path, sizeof(path), "%s/t/a/pipe", far);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 3, 0, "a/pipe"), 0);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 3, 0, "x"), -EBADF);
	assert_int_equal(unlink(path), 0);
	bye(&r);
}

/* A file says nothing about its stream or index if it cannot be opened: then nothing is cut. */
static void test_unreadable_files(void **state)
{
	static const char *const files[] = {"index/c.kyx", "c"};
	char far[128], path[256], away[300];
	struct receiver r;
	struct stat st;

	make_far(far, "far-unreadable");
	hello(&r, far);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 0, 0, "c"), 0);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 1, 0, "index/c.kyx"), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(send_text(&r, SEGMENT_DATA, i, 0, "abc"), 0);
	bye(&r);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/t/%s", far, files[i]);
		snprintf(away, sizeof(away), "%s.away", path);
		assert_int_equal(rename(path, away), 0);
		assert_int_equal(symlink(strrchr(away, '/') + 1, path), 0);
		receiver_init(&r, open(far, O_RDONLY | O_DIRECTORY));
		assert_int_equal(
			send_text(&r, SEGMENT_HELLO, 0, SEGMENT_SYNC, "0123456789abcdeft"), -ELOOP);
		bye(&r);
		assert_int_equal(rename(away, path), 0);
		snprintf(path, sizeof(path), "%s/t/%s", far, files[!i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, 3);
	}
}

/*
 * The sender gets these bytes from a receiver, and ends with this reason. NULL: with any. No
 * receiver sends such replies.
 */
static void expect_end(struct made *m, const uint8_t *bytes, size_t n, const char *why)
{
	struct sender s;
	int pair[2];

	assert_int_equal(sender_init(&s, m->dir, "t", true), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[1], bytes, n, 0), n);
	assert_true(sender_run(&s, pair[0], -1) < 0);
	assert_true(why ? strstr(s.why, why) != NULL : *s.why);
	sender_deinit(&s);
	close(pair[0]);
	close(pair[1]);
}

/* Reads until data comes, and acknowledges other bytes than those. */
static void acknowledge_wrongly(int fd, bool less)
{
	struct segment s = {.type = SEGMENT_READY}, ack;
	uint8_t head[SEGMENT_HEAD], payload[4096];

	segment_encode(&s, head);
	send(fd, head, sizeof(head), 0);
	while (s.type != SEGMENT_DATA)
		if (recv(fd, head, sizeof(head), MSG_WAITALL) != sizeof(head) ||
			segment_decode(head, &s) < 0 || s.length > sizeof(payload) ||
			recv(fd, payload, s.length, MSG_WAITALL) != (ssize_t)s.length)
			_exit(1);
	ack = (struct segment){
		.type = SEGMENT_ACK, .file = s.file, .offset = s.offset + s.raw + !less};
	segment_encode(&ack, head);
	send(fd, head, sizeof(head), 0);
	ack.offset = 0;
	segment_encode(&ack, head);
	if (less)
		send(fd, head, sizeof(head), MSG_NOSIGNAL);
	while (recv(fd, payload, sizeof(payload), 0) > 0)
		;
	_exit(0);
}

static void test_wrong_acknowledgement(void **state)
{
	struct made m;

	make_trace(&m, "wrong");
	add_packet(&m, 100);
	for (unsigned less = 0; less < 2; less++) {
		struct sender s;
		int pair[2];
		pid_t child;

		assert_int_equal(sender_init(&s, m.dir, "t", true), 0);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		child = fork();
		if (!child) {
			close(pair[0]);
			acknowledge_wrongly(pair[1], less);
		}
		close(pair[1]);
		assert_int_equal(sender_run(&s, pair[0], -1), -EPROTO);
		assert_string_equal(s.why, "the receiver acknowledges data that was not sent");
		close(pair[0]);
		assert_int_equal(waitpid(child, NULL, 0), child);
		sender_deinit(&s);
	}
	free_trace(&m);
}

static void test_hostile_receiver(void **state)
{
	const struct {
		struct segment answers[2];
		const char *why;
	} bad[] = {
		{{{.type = SEGMENT_READY}, {.type = SEGMENT_ACK, .offset = 1}}, "not sent"},
		{{{.type = SEGMENT_READY}, {.type = SEGMENT_READY}}, "Protocol error"},
		{{{.type = SEGMENT_READY}, {.type = SEGMENT_HAVE}}, "Protocol error"},
		{{{.type = SEGMENT_READY}, {.type = SEGMENT_END}}, "Protocol error"},
		{{{.type = SEGMENT_READY}, {.type = SEGMENT_WATERMARK}}, "Protocol error"},
		{{{.type = SEGMENT_READY}, {.type = SEGMENT_ALIVE}}, "Protocol error"},
		{{{.type = SEGMENT_READY}, {.type = SEGMENT_DATA, .length = SEGMENT_PATH_MAX + 1}},
			"not 'kymo receive'"},
	};
	uint8_t bytes[3 * SEGMENT_HEAD];
	struct made m;

	make_trace(&m, "hostile");
	add_packet(&m, 100);
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++) {
		segment_encode(&bad[i].answers[0], bytes);
		segment_encode(&bad[i].answers[1], bytes + SEGMENT_HEAD);
		expect_end(&m, bytes, 2 * SEGMENT_HEAD, bad[i].why);
	}
	for (unsigned i = 0; i < 50; i++) {
		segment_encode(&bad[0].answers[0], bytes);
		for (size_t j = SEGMENT_HEAD; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)rand_r(&m.seed);
		expect_end(&m, bytes, sizeof(bytes), NULL);
	}
	free_trace(&m);
}

static void send_head(int fd, enum segment_type type, uint64_t offset, const char *payload)
{
	struct segment s = {.type = type, .offset = offset, .length = (uint32_t)strlen(payload)};
	uint8_t bytes[SEGMENT_HEAD + 64];

	s.crc = segment_crc(payload, s.length);
	segment_encode(&s, bytes);
	memcpy(bytes + SEGMENT_HEAD, payload, s.length);
	assert_int_equal(send(fd, bytes, SEGMENT_HEAD + s.length, 0), SEGMENT_HEAD + s.length);
}

static struct segment next_answer(int fd)
{
	uint8_t head[SEGMENT_HEAD], payload[SEGMENT_PATH_MAX];
	struct segment s;

	assert_int_equal(recv(fd, head, sizeof(head), MSG_WAITALL), sizeof(head));
	assert_int_equal(segment_decode(head, &s), 0);
	assert_int_equal(recv(fd, payload, s.length, MSG_WAITALL), s.length);
	return s;
}

/* Serves a sender that says HELLO and ALIVE, then nothing. full: and it reads nothing. */
static void serve_silence(const char *far, int pair[2], bool full)
{
	struct receiver r;
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	while (write(pipes[1], top, 1) == 1)
		;
	receiver_init(&r, open(far, O_RDONLY | O_DIRECTORY));
	r.in = pair[1];
	r.out = full ? pipes[1] : pair[1];
	r.patience_ms = 1;
	send_head(pair[0], SEGMENT_HELLO, SEGMENT_NEVER_SILENT, "0123456789abcdeft");
	send_head(pair[0], SEGMENT_ALIVE, 0, "");
	assert_int_equal(receiver_serve(&r), -ETIMEDOUT);
	assert_string_equal(r.why, "the connection stood still for 20 s");
	close(r.dir);
	receiver_deinit(&r);
	close(pipes[0]);
	close(pipes[1]);
}

/* A receiver ends when a sender is silent that said it never is. The next one has the lock. */
static void test_silent_sender(void **state)
{
	char far[128];
	int pair[2];

	make_far(far, "far-silent");
	for (int full = 0; full < 2; full++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		serve_silence(far, pair, full);
		if (!full) {
			struct segment s = next_answer(pair[0]);

			assert_int_equal(s.type, SEGMENT_READY);
			assert_int_equal(s.offset, SEGMENT_NEVER_SILENT);
			assert_int_equal(next_answer(pair[0]).type, SEGMENT_ALIVE);
			assert_int_equal(next_answer(pair[0]).type, SEGMENT_ERROR);
		}
		close(pair[0]);
		close(pair[1]);
	}
}

static void test_packer(void **state)
{
	const uint64_t ms = 1000000;
	uint8_t raw[4096], packed[4096], back[4097];
	unsigned seed = SEED;
	struct packer p;
	size_t n;

	memset(raw, 7, sizeof(raw));
	packer_init(&p, 0);
	assert_int_equal(packer_pack(&p, raw, sizeof(raw), packed), 0);
	packer_account(&p, 200 * ms, 90 * ms, 1000);
	assert_int_equal(packer_pack(&p, raw, sizeof(raw), packed), 0);
	packer_account(&p, 400 * ms, 190 * ms, 100u << 20);
	assert_int_equal(packer_pack(&p, raw, sizeof(raw), packed), 0);
	packer_account(&p, 600 * ms, 190 * ms, 1000);
	n = packer_pack(&p, raw, sizeof(raw), packed);
	assert_in_range(n, 1, sizeof(raw) / 2);
	assert_int_equal(packer_unpack(packed, n, back, sizeof(raw)), 0);
	assert_memory_equal(raw, back, sizeof(raw));
	assert_int_equal(packer_unpack(packed, n, back, sizeof(raw) - 1), -EBADMSG);
	assert_int_equal(packer_unpack(packed, n, back, sizeof(raw) + 1), -EBADMSG);
	assert_int_equal(packer_unpack(packed, n - 1, back, sizeof(raw)), -EBADMSG);
	packed[n / 2] ^= 0xff;
	packed[0] ^= 0xff;
	assert_int_equal(packer_unpack(packed, n, back, sizeof(raw)), -EBADMSG);
	for (size_t i = 0; i < sizeof(raw); i++)
		raw[i] = (uint8_t)rand_r(&seed);
	assert_int_equal(packer_pack(&p, raw, sizeof(raw), packed), 0);
	packer_account(&p, 800 * ms, 0, 1000);
	memset(raw, 7, sizeof(raw));
	assert_int_equal(packer_pack(&p, raw, sizeof(raw), packed), 0);
	packer_deinit(&p);
}

/* Returns how many files, each in a directory of its own, the receiver accepts now. */
static unsigned n_accepted(const char *far, unsigned first)
{
	struct receiver r;
	char path[64];
	int ret = 0;
	unsigned i = 0;

	hello(&r, far);
	r.max = 8192;
	for (; !ret; i++) {
		snprintf(path, sizeof(path), "d%u/f", first + i);
		assert_int_equal(handle_with_crc(&r,
					 (struct segment){.type = SEGMENT_FILE,
						 .file = i,
						 .length = (uint32_t)strlen(path)},
					 path),
			0);
		ret = handle_with_crc(
			&r, (struct segment){.type = SEGMENT_DATA, .file = i, .length = 1}, "x");
	}
	assert_int_equal(ret, -EDQUOT);
	assert_string_equal(r.why, "t has its limit of 258 files and directories");
	close(r.dir);
	receiver_deinit(&r);
	return i - 1;
}

static void test_many_files(void **state)
{
	char far[128];

	make_far(far, "far-many");
	assert_int_equal(n_accepted(far, 0), 128); /* and the recording's own directory */
	assert_int_equal(n_accepted(far, 1000), 0);
}

/* Files that a trace does not have do not become files of the sender. */
static void test_files_of_no_trace(void **state)
{
	const struct segment ready = {.type = SEGMENT_READY};
	uint8_t bytes[SEGMENT_HEAD];
	struct sender s;
	char name[16];
	struct made m;
	int pair[2];

	make_trace(&m, "no-trace");
	add_packet(&m, 100);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(sender_init(&s, m.dir, "t", true), 0);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		send_head(pair[1], SEGMENT_HAVE, 5, name);
	}
	segment_encode(&ready, bytes);
	assert_int_equal(send(pair[1], bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
	assert_int_equal(sender_run(&s, pair[0], -1), -ECONNRESET);
	assert_in_range(s.n_files, 1, 10);
	sender_deinit(&s);
	close(pair[0]);
	close(pair[1]);
	free_trace(&m);
}

/* A receiver knows beforehand how many bytes a segment becomes. */
static void test_hostile_packed(void **state)
{
	char far[128], path[256], zeros[4096] = "";
	struct packer p = {.slow = true};
	uint8_t packed[4096], head[SEGMENT_HEAD];
	uint32_t crc;
	struct segment s = {.type = SEGMENT_DATA, .codec = SEGMENT_ZSTD, .raw = sizeof(zeros)}, d;
	struct receiver r;
	struct stat st;

	s.length = (uint32_t)packer_pack(&p, zeros, sizeof(zeros), packed);
	s.crc = segment_crc(zeros, sizeof(zeros));
	packer_deinit(&p);
	make_far(far, "far-packed");
	hello(&r, far);
	assert_int_equal(
		handle_with_crc(&r, (struct segment){.type = SEGMENT_FILE, .length = 3}, "a/b"), 0);
	s.raw = 4095;
	assert_int_equal(receiver_handle(&r, &s, packed), -EBADMSG);
	s.raw = 4097;
	assert_int_equal(receiver_handle(&r, &s, packed), -EBADMSG);
	s.raw = 4096;
	r.max = 4095;
	assert_int_equal(receiver_handle(&r, &s, packed), -EDQUOT);
	r.max = 4096;
	s.crc++;
	assert_int_equal(receiver_handle(&r, &s, packed), -EBADMSG);
	s.crc--;
	snprintf(path, sizeof(path), "%s/t/a/b", far);
	assert_true(stat(path, &st) < 0 || !st.st_size);
	assert_int_equal(receiver_handle(&r, &s, packed), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 4096);
	close(r.dir);
	receiver_deinit(&r);
	/* Heads that no sender makes. */
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), 0);
	s.raw = s.length;
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), -EPROTO);
	s.raw = SEGMENT_PAYLOAD_MAX + 1;
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), -EPROTO);
	s.raw = 100;
	s.length = 10;
	s.type = SEGMENT_FILE;
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), -EPROTO);
	s.type = SEGMENT_DATA;
	s.codec = SEGMENT_ZEROS;
	s.length = 101;
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), -EPROTO);
	s.length = 100;
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), 0);
	s.offset = (uint64_t)INT64_MAX + 1;
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), -EPROTO);
	s = (struct segment){.type = SEGMENT_DATA, .length = 100};
	segment_encode(&s, head);
	assert_int_equal(segment_decode(head, &d), 0);
	head[RAW_AT]++; /* without a codec, both lengths are one */
	crc = htole32(segment_crc(head, CRC_AT));
	memcpy(head + CRC_AT, &crc, sizeof(crc));
	assert_int_equal(segment_decode(head, &d), -EPROTO);
}

/* Any other bit in an answer: the connection ends, and the sender believes nothing of it. */
static void test_damaged_answers(void **state)
{
	const struct segment ready = {.type = SEGMENT_READY};
	struct segment have = {.type = SEGMENT_HAVE, .offset = 1, .length = sizeof(STREAM) - 1};
	uint8_t bytes[2 * SEGMENT_HEAD + sizeof(STREAM) - 1];
	struct made m;

	make_trace(&m, "damaged");
	add_packet(&m, 100);
	have.crc = segment_crc(STREAM, have.length);
	segment_encode(&have, bytes);
	memcpy(bytes + SEGMENT_HEAD, STREAM, have.length);
	segment_encode(&ready, bytes + SEGMENT_HEAD + have.length);
	for (size_t at = 0; at < sizeof(bytes); at++) {
		bytes[at] ^= (uint8_t)(1u << at % 8);
		expect_end(&m, bytes, sizeof(bytes),
			at % (SEGMENT_HEAD + have.length) < 4 ? "not 'kymo receive'"
							      : "damaged on its way");
		bytes[at] ^= (uint8_t)(1u << at % 8);
	}
	free_trace(&m);
}

/* The same of what a sender says: the receiver makes nothing of it. */
static void test_damaged_orders(void **state)
{
	static const char hello_payload[] = "0123456789abcdeft";
	struct segment file = {.type = SEGMENT_FILE, .length = 3};
	struct segment first = {.type = SEGMENT_HELLO, .length = sizeof(hello_payload) - 1};
	uint8_t bytes[2 * SEGMENT_HEAD + sizeof(hello_payload) - 1 + 3];
	struct receiver r;
	char far[128];
	int fds[2];

	make_far(far, "far-damaged");
	first.crc = segment_crc(hello_payload, first.length);
	file.crc = segment_crc("a/b", 3);
	for (size_t at = 0; at < sizeof(bytes); at++) {
		segment_encode(&first, bytes);
		memcpy(bytes + SEGMENT_HEAD, hello_payload, first.length);
		segment_encode(&file, bytes + SEGMENT_HEAD + first.length);
		memcpy(bytes + sizeof(bytes) - 3, "a/b", 3);
		bytes[at] ^= (uint8_t)(1u << at % 8);
		assert_int_equal(pipe(fds), 0);
		assert_int_equal(write(fds[1], bytes, sizeof(bytes)), sizeof(bytes));
		close(fds[1]);
		receiver_init(&r, open(far, O_RDONLY | O_DIRECTORY));
		r.in = fds[0];
		assert_true(receiver_serve(&r) < 0);
		assert_int_equal(r.n_paths, 0);
		close(fds[0]);
		bye(&r);
	}
}

static void test_files(void **state)
{
	char buf[128];

	assert_true(files_is_index("ust/uid/0/index/a.kyx") && files_is_index("index/a.kyx"));
	assert_false(files_is_index("xindex/a.kyx") || files_is_index("index/formats") ||
		     files_is_index("a.kyx"));
	files_stream_of("ust/index/a_1.kyx", buf, sizeof(buf));
	assert_string_equal(buf, "ust/a_1");
	assert_true(files_index_of("ust/a_1", buf, sizeof(buf)));
	assert_string_equal(buf, "ust/index/a_1.kyx");
	assert_false(files_index_of("ust/metadata", buf, sizeof(buf)) ||
		     files_index_of("index/x", buf, sizeof(buf)));
}

/* Both ways give the same for each length and alignment, and so do two parts that are joined. */
static void test_crc(void **state)
{
	uint8_t data[20000];
	uint32_t whole;

	assert_int_equal(segment_crc("123456789", 9), 0xe3069283);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 11);
	for (size_t at = 0; at < 8; at++)
		for (size_t n = 0; n <= sizeof(data) - at; n += n < 80 ? 1 : 397)
			assert_int_equal(segment_crc(data + at, n),
				~segment_crc_by_table(~0u, data + at, n));
	whole = segment_crc(data, sizeof(data));
	for (size_t n = 0; n <= sizeof(data); n += 625)
		assert_int_equal(
			whole, segment_crc_join(segment_crc(data, n),
				       segment_crc(data + n, sizeof(data) - n), sizeof(data) - n));
}

/* The mean stays below the rate, whatever the pieces, and a pause is not made up for. */
static void test_pace(void **state)
{
	struct pace p = {.rate = 1000}, none = {0};

	assert_int_equal(pace_rest_ns(&p, 5), 0);
	assert_int_equal(pace_piece(&p, 5000), 101);
	assert_int_equal(pace_piece(&p, 7), 7);
	pace_note(&p, 0, 100);
	assert_int_equal(pace_rest_ns(&p, 0), 100000000);
	assert_int_equal(pace_rest_ns(&p, 100000000), 0);
	pace_note(&p, 50000000, 50);
	assert_int_equal(pace_rest_ns(&p, 50000000), 100000000);
	pace_note(&p, 9000000000, 10);
	assert_int_equal(pace_rest_ns(&p, 9000000000), 10000000);
	pace_note(&none, 0, 1000000);
	assert_int_equal(pace_rest_ns(&none, 0), 0);
	assert_int_equal(pace_piece(&none, 5000), 5000);
}

static int make_top(void **state)
{
	strcpy(top, "/tmp/kymo-test-ship-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_crc),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_at_each),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_spool),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_hostile_hello),
		cmocka_unit_test(test_hostile_paths),
		cmocka_unit_test(test_hostile_data),
		cmocka_unit_test(test_hostile_files),
		cmocka_unit_test(test_unreadable_files),
		cmocka_unit_test(test_hostile_receiver),
		cmocka_unit_test(test_wrong_acknowledgement),
		cmocka_unit_test(test_silent_sender),
		cmocka_unit_test(test_packer),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_files_of_no_trace),
		cmocka_unit_test(test_hostile_packed),
		cmocka_unit_test(test_damaged_answers),
		cmocka_unit_test(test_damaged_orders),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
