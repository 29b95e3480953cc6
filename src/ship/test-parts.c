/* SPDX-License-Identifier: MIT */
/* The parts of both ends that need no trace: names of files, checksums, compression, pace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ship/files.h"
#include "ship/pace.h"
#include "ship/packer.h"
#include "ship/segment.h"

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

static void test_packer(void **state)
{
	const uint64_t ms = 1000000;
	uint8_t raw[4096], packed[4096], back[4097];
	unsigned seed = 1;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_crc),
		cmocka_unit_test(test_packer),
		cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
