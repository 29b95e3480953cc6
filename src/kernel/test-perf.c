/* SPDX-License-Identifier: MIT */
/* Records of perf's, made by hand, and the trace's bytes that they become. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "abi/ring.h"
#include "kernel/page.h"
#include "kernel/perf-record.h"

#define MAX_ADDRESSES 127

static uint8_t page[KY_PERF_PAGE_SIZE], out[KY_PERF_PAGE_SIZE * 2];
static struct ky_perf_page *head = (struct ky_perf_page *)(void *)page;
static uint32_t filled;

static uint8_t *put32(uint8_t *to, uint32_t v)
{
	return mempcpy(to, &v, sizeof(v));
}

static uint8_t *put64(uint8_t *to, uint64_t v)
{
	return mempcpy(to, &v, sizeof(v));
}

static void begin_page(void)
{
	memset(page, 0, sizeof(page));
	/* perf's nanosecond 1000 is 500 of ours; 2 of ours pass in one of perf's */
	head->times = (struct ky_perf_times){{1000, 2000}, {500, 2500}};
	filled = sizeof(*head);
}

static void add_perf_record(uint32_t type, uint16_t misc, const uint8_t *body, size_t len)
{
	struct perf_event_header h = {type, misc, (uint16_t)(sizeof(h) + len)};

	memcpy(mempcpy(page + filled, &h, sizeof(h)), body, len);
	filled += h.size;
	head->len = filled - sizeof(*head);
}

static void add_sample(uint64_t ip, uint64_t ns, const uint64_t *chain, uint64_t n)
{
	uint8_t body[40 + 8 * (MAX_ADDRESSES + 4)], *to = put64(body, ip);

	to = put32(put32(to, 10), 11);
	to = put64(put64(put64(to, ns), 77), n);
	to = mempcpy(to, chain, n * 8);
	add_perf_record(PERF_RECORD_SAMPLE, 0, body, (size_t)(to - body));
}

static struct ky_kplace transcode_samples(const uint8_t **ret_end)
{
	struct ky_kplace place = {.at = sizeof(*head), .clock = 9};

	*ret_end = ky_perf_transcode(&place, page, out, out + sizeof(out), NULL);
	assert_int_equal(place.at, 0);
	assert_int_equal(place.clock, 9);
	return place;
}

/* Skips the head of a record, which must have this identifier and clock, and its contexts. */
static const uint8_t *check_begin(const uint8_t *at, uint32_t id, uint64_t clock)
{
	assert_int_equal(ky_load32(at) & ((1u << KY_ID_BITS) - 1), id);
	assert_int_equal(ky_load32(at) >> KY_ID_BITS, clock);
	assert_int_equal(ky_load32(at + 4), 11); /* the thread */
	assert_int_equal(ky_load32(at + 8), 10);
	return at + 12;
}

static void test_sample(void **state)
{
	const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000010,
		0xffffffff81000020, (uint64_t)PERF_CONTEXT_USER, 0x1000, 0x2000};
	const uint64_t user[] = {(uint64_t)PERF_CONTEXT_USER, 0x1000, 0x2000, 0x1000};
	const uint8_t *end, *at;
	struct ky_kplace place;

	begin_page();
	add_sample(0xffffffff81000010, 1100, chain, 6);
	add_sample(0x1000, 1200, user, 4);
	place = transcode_samples(&end);
	assert_int_equal(place.count, 2);
	assert_int_equal(place.n_refused, 0);

	at = check_begin(out, 0, 700);
	assert_int_equal(ky_load64(at), 0xffffffff81000010);
	assert_int_equal(ky_load64(at + 8), 77);
	assert_int_equal(ky_load32(at + 16), 1); /* not where it was, only who called */
	assert_int_equal(ky_load64(at + 20), 0xffffffff81000020);
	assert_int_equal(ky_load32(at + 28), 2);
	assert_int_equal(ky_load64(at + 32), 0x1000);
	assert_int_equal(ky_load64(at + 40), 0x2000);

	at = check_begin(at + 48, 0, 900);
	assert_int_equal(ky_load32(at + 16), 0);
	assert_int_equal(ky_load32(at + 20), 2);
	assert_int_equal(ky_load64(at + 24), 0x2000);
	assert_int_equal(ky_load64(at + 32), 0x1000); /* a function may call itself */
	assert_ptr_equal(at + 40, end);
}

#define TRAILER(to, ns) put64(put32(put32(to, 10), 11), ns)

static void add_map(const char *path, bool identified)
{
	uint8_t body[256] = {0}, *to = put32(put32(body, 10), 11);

	to = put64(put64(put64(to, 0x400000), 0x3000), 0x1000);
	if (identified)
		memcpy(to, "\x04\0\0\0\x01\x02\x03\x04", 8);
	to = mempcpy(to + 32, path, strlen(path) + 1);
	while ((to - body) % 8)
		*to++ = '\0';
	to = TRAILER(to, 1300);
	add_perf_record(PERF_RECORD_MMAP2, identified ? 1 << 14 : 0, body, (size_t)(to - body));
}

static void test_files(void **state)
{
	const uint8_t *end, *at;
	struct ky_kplace place;
	uint8_t body[64], *to;

	begin_page();
	add_map("/bin/x", true);
	add_map("[vdso]", false);
	add_map("//anon", false);
	add_map("/bin/y", false);
	to = TRAILER(mempcpy(put32(put32(body, 10), 11), "one\0\0\0\0", 8), 1400);
	add_perf_record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, body, (size_t)(to - body));
	add_perf_record(PERF_RECORD_COMM, 0, body, (size_t)(to - body));
	to = put64(put32(put32(put32(put32(body, 10), 3), 11), 4), 1500);
	to = TRAILER(to, 1500);
	add_perf_record(PERF_RECORD_FORK, 0, body, (size_t)(to - body));
	put32(body + 4, 10); /* of the same process: a thread */
	add_perf_record(PERF_RECORD_FORK, 0, body, (size_t)(to - body));
	place = transcode_samples(&end);
	assert_int_equal(place.count, 4);
	assert_int_equal(place.n_refused, 0);

	at = check_begin(out, 1, 1100);
	assert_int_equal(ky_load64(at), 0x400000);
	assert_int_equal(ky_load64(at + 8), 0x3000);
	assert_int_equal(ky_load64(at + 16), 0x1000);
	assert_memory_equal(at + 24, "/bin/x\0\1\4\0\0\0\1\2\3\4", 16);
	at = check_begin(at + 40, 1, 1100);
	assert_memory_equal(at + 24, "/bin/y\0\0\0\0\0\0", 12);
	at = check_begin(at + 36, 2, 1300);
	assert_memory_equal(at, "one", 4);
	at = check_begin(at + 4, 3, 1500);
	assert_int_equal(ky_load32(at), 3);
	assert_ptr_equal(at + 4, end);
}

/* A record that claims more than there is ends its page, and is counted; others are left out. */
static void test_invalid(void **state)
{
	const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_USER, 1};
	struct ky_kplace place;
	const uint8_t *end;
	uint32_t first;

	begin_page();
	add_sample(1, 1100, chain, 2);
	first = filled;
	add_sample(1, 1200, chain, 2);
	put64(page + first + 8 + 32, 3); /* addresses behind its end */
	add_sample(1, 1300, chain, 2);
	assert_int_equal(transcode_samples(&end).n_refused, 1);

	put64(page + first + 8 + 32, UINT64_MAX / 4);
	place = transcode_samples(&end);
	assert_int_equal(place.n_refused, 1);
	assert_int_equal(place.count, 2);

	page[first + 6] = 7; /* shorter than a header */
	place = transcode_samples(&end);
	assert_int_equal(place.n_refused, 1);
	assert_int_equal(place.count, 1);

	page[first + 6] = page[first + 7] = 0xff;
	assert_int_equal(transcode_samples(&end).n_refused, 1);
	head->len = UINT64_MAX;
	transcode_samples(&end);
	for (uint32_t type = 0; type < 30; type++)
		for (uint32_t len = 8; len < 80; len += 8) {
			begin_page();
			add_perf_record(type, 0xffff, page + 4096, len - 8);
			transcode_samples(&end);
		}
}

/* Records of any number of bytes in blocks of any: the same as in one. */
static void test_room(void **state)
{
	uint64_t chain[MAX_ADDRESSES + 1] = {(uint64_t)PERF_CONTEXT_USER};
	static uint8_t whole[sizeof(out)];
	struct ky_kplace place = {.at = sizeof(*head)};
	const uint8_t *end;
	uint8_t *to = out;
	size_t len;

	begin_page();
	for (uint64_t i = 0; i < 60; i++)
		add_sample(1, 1100 + i, chain, 1 + i * 2);
	transcode_samples(&end);
	len = (size_t)(end - out);
	memcpy(whole, out, len);
	memset(out, 0xee, sizeof(out));
	while (place.at) {
		const uint8_t *stop = to + 1500;

		to = ky_perf_transcode(&place, page, to, stop, NULL);
		assert_true(to <= stop && *to == 0xee);
	}
	assert_int_equal(place.count, 60);
	assert_int_equal(to - out, len);
	assert_memory_equal(out, whole, len);
}

static void test_clock(void **state)
{
	struct ky_perf_times t = {{1000, 1000}, {70, 70}};

	assert_int_equal(ky_perf_clock(&t, 1500), 570); /* one reading: as fast as each other */
	assert_int_equal(ky_perf_clock(&t, 990), 60);
	t = (struct ky_perf_times){{0, 0}, {0, 0}};
	assert_int_equal(ky_perf_clock(&t, 1500), 1500);
	/* a day at 3 GHz */
	t = (struct ky_perf_times){{1, 86400000000001}, {5, 259200000000005}};
	assert_int_equal(ky_perf_clock(&t, 86400000000001), 259200000000005);
	assert_int_equal(ky_perf_clock(&t, 43200000000001), 129600000000005);
	assert_int_equal(ky_perf_clock(&t, 86400000001001), 259200000003005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
