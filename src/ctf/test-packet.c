/* SPDX-License-Identifier: MIT */
/* Golden bytes of packet headers and index files: what docs/trace-format.md promises to readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctf/index.h"
#include "ctf/packet.h"

static const uint8_t golden_packet[128] = {
	0xc1, 0x1f, 0xfc, 0xc1,				/* magic */
	0x2a, 0x64, 0x22, 0xd0, 0x6c, 0xee, 0x11, 0xe0, /* uuid */
	0x8c, 0x08, 0xcb, 0x07, 0xd7, 0xb3, 0xa5, 0x64, /* */
	0x04, 0x03, 0x02, 0x01,				/* stream_id */
	0x11, 0x10, 0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, /* instance */
	0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, /* pid (or cpu), tid */
	'w', 'o', 'r', 'k', 'e', 'r', 0, 0,		/* name */
	0, 0, 0, 0, 0, 0, 0, 0,				/* */
	0x00, 0x10, 0, 0, 0, 0, 0, 0x01,		/* begin */
	0x31, 0, 0, 0, 0, 0, 0, 0x32,			/* timestamp_begin */
	0x33, 0, 0, 0, 0, 0, 0, 0x34,			/* timestamp_end */
	0x21, 0, 0, 0, 0, 0, 0, 0x22,			/* events */
	0x23, 0, 0, 0, 0, 0, 0, 0x24,			/* too big */
	0x10, 0x04, 0, 0, 0, 0, 0, 0,			/* content: 130 bytes */
	0x10, 0x04, 0, 0, 0, 0, 0, 0,			/* packet */
	0x41, 0, 0, 0, 0, 0, 0, 0x42,			/* seq */
	0x51, 0x52, 0x53, 0x54, 0x55, 0, 0, 0,		/* discarded */
};

static const uint8_t golden_index[64] = {
	0x4b, 0x59, 0x49, 0x58, 1, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, /* header */
	0x71, 0, 0, 0, 0, 0, 0, 0x72,				     /* offset */
	130, 0, 0, 0, 0, 0, 0, 0,				     /* size */
	0x31, 0, 0, 0, 0, 0, 0, 0x32,				     /* timestamp_begin */
	0x33, 0, 0, 0, 0, 0, 0, 0x34,				     /* timestamp_end */
	0x21, 0, 0, 0, 0, 0, 0, 0x22,				     /* events */
	0x51, 0x52, 0x53, 0x54, 0x55, 0, 0, 0,			     /* discarded */
};

static struct ky_ctf_packet sample(void)
{
	struct ky_ctf_packet p = {
		.stream_id = 0x01020304,
		.stream_instance_id = 0x0a0b0c0d0e0f1011,
		.position_begin = 0x0100000000001000,
		.n_events = 0x2200000000000021,
		.lost_too_big = 0x2400000000000023,
		.timestamp_begin = 0x3200000000000031,
		.timestamp_end = 0x3400000000000033,
		.seq_num = 0x4200000000000041,
		.events_discarded = 0x5554535251,
		.owner = {.pid = 0x64636261, .tid = 0x68676665, .name = "worker"},
	};

	ky_ctf_uuid(p.uuid, 0x2a6422d06cee11e0, 0x8c08cb07d7b3a564);
	ky_ctf_packet_finish(&p, 2);
	return p;
}

static void test_packet(void **state)
{
	struct ky_ctf_packet p = sample();

	assert_memory_equal(&p, golden_packet, sizeof(golden_packet));
}

static void test_index(void **state)
{
	struct ky_ctf_packet p = sample();
	struct {
		struct ky_index_header header;
		struct ky_index_entry entry;
	} file;

	ky_index_header_init(&file.header);
	ky_index_entry_init(&file.entry, &p, 0x7200000000000071);
	assert_memory_equal(&file, golden_index, sizeof(golden_index));
	assert_int_equal(ky_index_offset(0), 16);
	assert_int_equal(ky_index_offset(3), 16 + 3 * 48);
}

static void test_check(void **state)
{
	const struct ky_ctf_packet like = sample();
	struct ky_ctf_packet p;

	assert_int_equal(ky_ctf_packet_check(&like, &like), 130);
	assert_int_equal(ky_ctf_packet_end(&like), 0x0100000000001002);
	p = like, p.magic++;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
	p = like, p.uuid[15]++;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
	p = like, p.stream_id++;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
	p = like, p.stream_instance_id++;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
	p = like, p.packet_bits += 8;
	assert_int_equal(ky_ctf_packet_check(&p, &like), 131);
	p = like, p.packet_bits += 8 * KY_CTF_PAGE;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
	p = like, p.packet_bits -= 8;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
	p = like, p.content_bits--;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
	p = like, p.packet_bits = p.content_bits = 8;
	assert_int_equal(ky_ctf_packet_check(&p, &like), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packet),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
