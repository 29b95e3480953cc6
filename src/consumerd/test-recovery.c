/* SPDX-License-Identifier: MIT */
/*
 * A recovery reads files that may be cut off, mixed up or overwritten. A mistake in these parsers
 * would read one session's buffers as another's, or describe events by half a description.
 */
#include "consumerd/recovery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "abi/ring.h"
#include "proto/wire.h"

#define UUID   "0123-4567"
#define BEGIN  "/* CTF 1.8 */\n\n"
#define TRACE  "trace {\n\tuuid = \"" UUID "\";\n};\n\n"
#define STREAM "stream {\n\tid = 7;\n};\n\n"
#define EVENT  "event {\n\tid = 1;\n};\n\n"

/* --- DIR/session --- */

static size_t put_message(uint8_t *to, uint32_t len)
{
	const struct ky_msg_hdr hdr = {.len = len, .type = 1};

	memset(to, 0xff, len);
	memcpy(to, &hdr, sizeof(hdr));
	return len;
}

/* Two messages, and of a third one a part, whatever that is. */
static void test_messages(void **state)
{
	static uint8_t bytes[64 + KY_MSG_MAX];
	const size_t first = put_message(bytes, sizeof(struct ky_msg_hdr));
	const size_t all = first + put_message(bytes + first, 24);

	put_message(bytes + all, 20);
	for (size_t size = 0; size < all + 20; size++) {
		size_t pos = 0;

		assert_int_equal(
			recovery_next_message(bytes, size, &pos), size < first ? 0 : first);
		assert_int_equal(pos, size < first ? 0 : first);
		if (size < first)
			continue;
		assert_int_equal(recovery_next_message(bytes, size, &pos), size < all ? 0 : 24);
		assert_int_equal(pos, size < all ? first : all);
		if (size < all)
			continue;
		assert_int_equal(recovery_next_message(bytes, size, &pos), 0);
		assert_int_equal(pos, all);
	}
}

/* Lengths that no message has. */
static void test_lengths(void **state)
{
	static uint8_t bytes[2 * KY_MSG_MAX];
	static const struct {
		uint32_t len;
		size_t expected;
	} cases[] = {
		{0, 0},
		{sizeof(struct ky_msg_hdr) - 1, 0},
		{KY_MSG_MAX, KY_MSG_MAX},
		{KY_MSG_MAX + 1, 0},
		{UINT32_MAX, 0},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(cases); i++) {
		const struct ky_msg_hdr hdr = {.len = cases[i].len};
		size_t pos = 0;

		memcpy(bytes, &hdr, sizeof(hdr));
		assert_int_equal(
			recovery_next_message(bytes, sizeof(bytes), &pos), cases[i].expected);
		assert_int_equal(pos, cases[i].expected);
	}
}

/* --- the header of buffers --- */

static void make_set(struct ky_cons_ring_set *m, struct ky_set_header *h)
{
	struct ky_geometry g = {.n_rings = 2, .n_blocks = 4, .n_home = 2, .block_size = 16384};

	assert_int_equal(ky_geometry_init(&g), 0);
	*m = (struct ky_cons_ring_set){.set = 3, .uuid_hi = 4, .uuid_lo = 5};
	KY_GEOMETRY_COPY(m, &g);
	*h = (struct ky_set_header){.magic = KY_RING_MAGIC,
		.version = KY_RING_VERSION,
		.number = m->set,
		.uuid_hi = m->uuid_hi,
		.uuid_lo = m->uuid_lo};
	KY_GEOMETRY_COPY(h, &g);
}

/* The geometry is the daemon's: a program could write into the header. */
static void test_header(void **state)
{
	static const size_t words[] = {
		offsetof(struct ky_set_header, magic),
		offsetof(struct ky_set_header, version),
		offsetof(struct ky_set_header, mode),
		offsetof(struct ky_set_header, clock),
		offsetof(struct ky_set_header, overwrite),
		offsetof(struct ky_set_header, n_rings),
		offsetof(struct ky_set_header, n_blocks),
		offsetof(struct ky_set_header, n_home),
		offsetof(struct ky_set_header, block_size),
		offsetof(struct ky_set_header, number),
		offsetof(struct ky_set_header, total_size),
		offsetof(struct ky_set_header, uuid_hi),
		offsetof(struct ky_set_header, uuid_lo),
	};
	struct ky_cons_ring_set m;
	struct ky_geometry g = {0};
	struct ky_set_header h;

	make_set(&m, &h);
	assert_true(recovery_header_matches(&h, &m, &g));
	assert_int_equal(g.total_size, m.total_size);
	assert_true(g.data_offset && g.oldest_offset < g.total_size);
	for (size_t i = 0; i < KY_ARRAY_SIZE(words); i++) {
		struct ky_set_header other = h;

		((uint8_t *)&other)[words[i]] ^= 1;
		assert_false(recovery_header_matches(&other, &m, &g));
	}
	m.total_size++;
	h.total_size++;
	assert_false(recovery_header_matches(&h, &m, &g));
}

/* --- the metadata log --- */

static size_t whole(const char *text)
{
	return recovery_whole_text(text, strlen(text), UUID, 7);
}

static void test_text(void **state)
{
	static const char all[] = BEGIN TRACE STREAM EVENT;
	const size_t stream = strlen(BEGIN TRACE STREAM);

	assert_int_equal(whole(all), strlen(all));
	/* Cut off anywhere, it ends behind the last whole block, if the stream's is there. */
	for (size_t n = 0; n < strlen(all); n++)
		assert_int_equal(recovery_whole_text(all, n, UUID, 7), n < stream ? 0 : stream);
	/* Another session's, another stream's, and no log. */
	assert_int_equal(recovery_whole_text(all, strlen(all), "0123-4568", 7), 0);
	assert_int_equal(recovery_whole_text(all, strlen(all), UUID, 1), 0);
	assert_int_equal(recovery_whole_text(all, strlen(all), UUID, 70), 0);
	assert_int_equal(whole("/* CTF 1.9 */\n\n" TRACE STREAM), 0);
	assert_int_equal(whole(TRACE STREAM), 0);
	assert_int_equal(whole("\n\n"), 0);
	assert_int_equal(whole(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
