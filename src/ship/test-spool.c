/* SPDX-License-Identifier: MIT */
/* Spools: packets that expire, with both ends killed, and full disks. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctf/index.h"
#include "ship/segment.h"
#include "ship/spool.h"
#include "ship/test-fixture.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spool),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
