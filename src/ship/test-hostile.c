/* SPDX-License-Identifier: MIT */
/* Receivers and senders whose other end sends what it likes, and files of somebody else. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ship/packer.h"
#include "ship/receiver.h"
#include "ship/test-fixture.h"

#define RAW_AT 12 /* the length without codec in a head */
#define STREAM "ust/uid/0/channel0_0"
#define CRC_AT 36 /* the checksum of what is before it in a head */

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
 * A receiver was killed before the index of a stream came. A sender that has holes cannot send the
 * second part of a packet: the stream begins again. Other senders go on.
 */
static void test_no_index(void **state)
{
	static const uint64_t flags[] = {0, SEGMENT_SYNC};
	char far[128], path[256];
	struct receiver r;
	struct stat st;

	make_far(far, "far-no-index");
	hello(&r, far);
	assert_int_equal(send_text(&r, SEGMENT_FILE, 0, 0, "c"), 0);
	assert_int_equal(send_text(&r, SEGMENT_DATA, 0, 0, "abc"), 0);
	bye(&r);
	snprintf(path, sizeof(path), "%s/t/c", far);
	for (size_t i = 0; i < KY_ARRAY_SIZE(flags); i++) {
		receiver_init(&r, open(far, O_RDONLY | O_DIRECTORY));
		assert_int_equal(send_text(&r, SEGMENT_HELLO, 0, flags[i], "0123456789abcdeft"), 0);
		bye(&r);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, flags[i] ? 0 : 3);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_hostile_hello),
		cmocka_unit_test(test_hostile_paths),
		cmocka_unit_test(test_hostile_data),
		cmocka_unit_test(test_hostile_files),
		cmocka_unit_test(test_unreadable_files),
		cmocka_unit_test(test_no_index),
		cmocka_unit_test(test_hostile_receiver),
		cmocka_unit_test(test_wrong_acknowledgement),
		cmocka_unit_test(test_silent_sender),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_files_of_no_trace),
		cmocka_unit_test(test_hostile_packed),
		cmocka_unit_test(test_damaged_answers),
		cmocka_unit_test(test_damaged_orders),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
