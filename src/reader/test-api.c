/* SPDX-License-Identifier: MIT */
/* The public interface: batches, columns, filters, slices of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include <kymo/reader.h>

#include "base/buf.h"
#include "base/util.h"

#define N_PACKETS 300
#define N_RECORDS 1000 /* of a packet */
#define HEAD_SIZE 25   /* bytes; likewise */

static const char metadata[] =
	"trace { major = 1; minor = 8; byte_order = le; packet.header := struct {\n"
	"	integer { size = 32; align = 8; } magic; }; };\n"
	"env { hostname = \"h\"; vpid = 17; shift = -3; };\n"
	"clock { name = c; freq = 1000000000; };\n"
	"typealias integer { size = 8; align = 8; } := u8;\n"
	"typealias integer { size = 32; align = 8; } := u32;\n"
	"typealias integer { size = 64; align = 8; map = clock.c.value; } := t64;\n"
	"stream { event.header := struct { u8 id; t64 timestamp; }; packet.context := struct {\n"
	"	t64 timestamp_begin; u32 content_size; u32 packet_size; u32 events_discarded; u8 cpu_id; };\n"
	"	event.context := struct { integer { size = 32; align = 8; signed = 1; } _vtid; }; };\n"
	"event { name = \"shop:order\"; id = 1; loglevel = 6; fields := struct {\n"
	"	u32 _n; integer { size = 16; align = 8; signed = 1; } _delta; string _name;\n"
	"	struct { u8 x; floating_point { exp_dig = 11; mant_dig = 53; align = 8; } y; } _in;\n"
	"	enum : integer { size = 8; align = 8; } { zero, one, two } _state; u8 _list[3]; }; };\n"
	"event { name = \"shop:tick\"; id = 2; fields := struct { u32 _n; }; };\n";

static struct ky_buf stream;

static void append_to_stream(const void *p, size_t n)
{
	ky_buf_append(&stream, p, n);
}

static void put_number(uint64_t v, size_t size)
{
	append_to_stream(&v, size);
}

static void put_order(uint32_t i)
{
	double y = i / 2.0;

	put_number(i, 4);
	put_number((uint64_t) - (int64_t)(i % 100), 2);
	append_to_stream(i % 2 ? "odd" : "even", i % 2 ? 4 : 5);
	put_number(i % 7, 1);
	append_to_stream(&y, sizeof(y));
	put_number(i % 4, 1);
	append_to_stream("\1\2\3", 3);
}

/* Each tenth record is a tick. Times: 10 for each record. */
static int make_stream(void **state)
{
	(void)state;
	for (uint32_t p = 0, i = 0; p < N_PACKETS; p++) {
		size_t begin = stream.len;
		uint32_t bits;

		put_number(0xc1fc1fc1, 4);
		put_number((uint64_t)i * 10, 8);
		put_number(0, 8); /* sizes */
		put_number(p / 100, 4);
		put_number(3, 1);
		for (int k = 0; k < N_RECORDS; k++, i++) {
			put_number(i % 10 == 9 ? 2 : 1, 1);
			put_number((uint64_t)i * 10, 8);
			put_number(40 + i % 3, 4);
			if (i % 10 == 9)
				put_number(i, 4);
			else
				put_order(i);
		}
		bits = (uint32_t)(stream.len - begin) * 8;
		memcpy(stream.data + begin + 12, &bits, 4);
		memcpy(stream.data + begin + 16, &bits, 4);
	}
	return stream.error;
}

static int free_stream(void **state)
{
	(void)state;
	ky_buf_deinit(&stream);
	return 0;
}

static struct kymo_reader *open_reader(void)
{
	struct kymo_reader *r;

	assert_int_equal(kymo_reader_open_memory(&r, metadata, strlen(metadata), stream.data,
				 stream.len, NULL, NULL),
		0);
	return r;
}

static uint64_t number_in_column(const struct kymo_batch *b, size_t column, size_t row)
{
	return ((const uint64_t *)b->columns[column].values)[row];
}

static bool is_text(const struct kymo_batch *b, size_t column, size_t row, const char *text)
{
	size_t len;
	const char *s = kymo_batch_text(b, column, row, &len);

	return len == strlen(text) && !memcmp(s, text, len);
}

static void test_classes(void **state)
{
	struct kymo_reader_totals totals = {.size = sizeof(totals)};
	struct kymo_reader *r = open_reader();
	const struct kymo_event_class *c;

	(void)state;
	assert_int_equal(kymo_reader_n_classes(r), 2);
	c = kymo_reader_class(r, 0);
	assert_string_equal(c->name, "shop:order");
	assert_int_equal(c->log_level, 6);
	assert_int_equal(c->n_fields, 9);
	assert_string_equal(c->fields[0].name, "cpu_id");
	assert_int_equal(c->fields[1].scope, KYMO_SCOPE_STREAM);
	assert_string_equal(c->fields[6].name, "in.y");
	assert_int_equal(c->fields[6].type, KYMO_DOUBLE);
	assert_int_equal(c->fields[7].n_labels, 3);
	assert_int_equal(c->fields[8].is_array, 1);
	assert_null(kymo_reader_class(r, 2));
	assert_int_equal(kymo_reader_get_totals(r, &totals), 0);
	assert_int_equal(totals.n_packets, N_PACKETS);
	assert_int_equal(totals.n_discarded, 2);
	assert_int_equal(totals.n_bytes, stream.len);
	kymo_reader_close(r);
}

/* Counters may wrap, and traces may have no clock. */
static void test_totals(void **state)
{
	static const char text[] =
		"trace { byte_order = le; }; typealias integer { size = 8; align = 8; } := u8;"
		"stream { packet.context := struct { u8 content_size; u8 events_discarded; }; };"
		"event { fields := struct { u8 a; }; };";
	static const uint8_t data[] = {24, 250, 1, 24, 4, 2, 24, 3, 3, 24, 10, 4};
	static const uint64_t wanted[] = {250, 260, 260, 266};
	struct kymo_reader_totals totals = {.size = sizeof(totals)};
	struct kymo_packets *packets;
	struct kymo_packet packet;
	struct kymo_reader *r;

	(void)state;
	assert_int_equal(
		kymo_reader_open_memory(&r, text, strlen(text), data, sizeof(data), NULL, NULL), 0);
	assert_int_equal(kymo_packets_open(&packets, r, 0), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(kymo_packets_next(packets, &packet), 1);
		assert_int_equal(packet.n_discarded, wanted[i]);
	}
	kymo_packets_close(packets);
	assert_int_equal(kymo_reader_get_totals(r, &totals), 0);
	assert_int_equal(totals.n_packets, 4);
	assert_int_equal(totals.n_discarded, 266);
	assert_false(totals.has_times);
	kymo_reader_close(r);
}

/* If the heads of packets have no times, those of the events count. */
static void test_times_of_events(void **state)
{
	static const char text[] =
		"trace { byte_order = le; }; clock { name = c; freq = 1000000000; };"
		"typealias integer { size = 8; align = 8; } := u8;"
		"typealias integer { size = 8; align = 8; map = clock.c.value; } := t8;"
		"stream { event.header := struct { t8 timestamp; };"
		"	packet.context := struct { u8 content_size; %s }; };"
		"event { fields := struct { u8 a; }; };";
	static const struct {
		const char *context;
		uint8_t data[12];
		size_t size;
		int64_t begin_ns, end_ns;
	} cases[] = {
		{"", {40, 15, 1, 20, 2, 24, 30, 3}, 8, 15, 30},
		{"t8 timestamp_begin;", {32, 11, 15, 1, 32, 18, 20, 2}, 8, 11, 20},
		{"t8 timestamp_end;", {32, 16, 15, 1, 32, 23, 20, 2}, 8, 15, 23},
		{"t8 timestamp_begin; t8 timestamp_end;", {40, 11, 16, 15, 1}, 5, 11, 16},
	};

	(void)state;
	for (size_t i = 0; i < KY_ARRAY_SIZE(cases); i++) {
		struct kymo_reader_totals totals = {.size = sizeof(totals)};
		struct ky_buf tsdl = {0};
		struct kymo_reader *r;

		ky_buf_printf(&tsdl, text, cases[i].context);
		assert_int_equal(kymo_reader_open_memory(&r, tsdl.data, tsdl.len, cases[i].data,
					 cases[i].size, NULL, NULL),
			0);
		assert_int_equal(kymo_reader_get_totals(r, &totals), 0);
		assert_true(totals.has_times);
		assert_int_equal(totals.begin_ns, cases[i].begin_ns);
		assert_int_equal(totals.end_ns, cases[i].end_ns);
		kymo_reader_close(r);
		ky_buf_deinit(&tsdl);
	}
}

static void test_env(void **state)
{
	struct kymo_reader *r = open_reader();

	(void)state;
	assert_string_equal(kymo_reader_env(r, 0, "hostname"), "h");
	assert_string_equal(kymo_reader_env(r, 0, "vpid"), "17");
	assert_string_equal(kymo_reader_env(r, 0, "shift"), "-3");
	assert_null(kymo_reader_env(r, 0, "none"));
	assert_null(kymo_reader_env(r, 1, "vpid"));
	kymo_reader_close(r);
}

static void test_columns(void **state)
{
	static const struct {
		const char *name;
		enum kymo_column_type type, wanted;
	} columns[] = {{"n", KYMO_ANY, KYMO_UINT64}, {"delta", KYMO_ANY, KYMO_INT64},
		{"name", KYMO_ANY, KYMO_TEXT}, {"in.y", KYMO_ANY, KYMO_DOUBLE},
		{"state", KYMO_ANY, KYMO_TEXT}, {"list[1]", KYMO_ANY, KYMO_UINT64},
		{"vtid", KYMO_ANY, KYMO_INT64}, {"cpu_id", KYMO_TEXT, KYMO_TEXT},
		{"delta", KYMO_DOUBLE, KYMO_DOUBLE}, {"list", KYMO_TEXT, KYMO_TEXT},
		{"none", KYMO_ANY, KYMO_TEXT}, {"$ctx.n", KYMO_INT64, KYMO_INT64}};
	static const char *const states[] = {"zero", "one", "two", "3"};
	struct kymo_reader *r = open_reader();
	const struct kymo_batch *b;
	struct kymo_query *q;
	struct kymo_cursor *c;
	uint32_t i = 0;
	size_t column;

	(void)state;
	assert_int_equal(kymo_query_new(&q, r), 0);
	for (size_t k = 0; k < KY_ARRAY_SIZE(columns); k++) {
		assert_int_equal(
			kymo_query_column(q, columns[k].name, columns[k].type, &column), 0);
		assert_int_equal(column, k);
		assert_int_equal(kymo_query_column_type(q, k), columns[k].wanted);
	}
	assert_int_equal(kymo_query_column(q, "", KYMO_ANY, &column), -EINVAL);
	assert_int_equal(kymo_cursor_open(&c, q), 0);
	while (kymo_cursor_next(c, &b) > 0)
		for (size_t row = 0; row < b->n; row++, i++) {
			bool tick = i % 10 == 9;

			assert_int_equal(b->item[row], KYMO_ITEM_EVENT);
			assert_int_equal(b->ns[row], 10 * (int64_t)i);
			assert_int_equal(b->class_index[row], tick);
			assert_int_equal(number_in_column(b, 0, row), i);
			assert_int_equal(number_in_column(b, 6, row), 40 + i % 3);
			assert_true(is_text(b, 7, row, "3"));
			for (size_t k = 0; k < KY_ARRAY_SIZE(columns); k++)
				assert_int_equal(kymo_batch_has(b, k, row),
					k < 10 && (!tick || k == 0 || k == 6 || k == 7));
			if (tick)
				continue;
			assert_int_equal((int64_t)number_in_column(b, 1, row), -(int64_t)(i % 100));
			assert_true(is_text(b, 2, row, i % 2 ? "odd" : "even"));
			assert_true(((const double *)b->columns[3].values)[row] == i / 2.0);
			assert_true(is_text(b, 4, row, states[i % 4]));
			assert_int_equal(number_in_column(b, 5, row), 2);
			assert_true(
				((const double *)b->columns[8].values)[row] == -(double)(i % 100));
			assert_true(is_text(b, 9, row, "[ [0] = 1, [1] = 2, [2] = 3 ]"));
		}
	assert_int_equal(i, N_PACKETS * N_RECORDS);
	kymo_cursor_close(c);
	kymo_query_free(q);
	kymo_reader_close(r);
}

/* Adds the numbers of all events to a buffer, as a query reads them. */
static void collect_numbers(struct kymo_query *q, struct ky_buf *to, uint64_t *lost)
{
	const struct kymo_batch *b;
	struct kymo_cursor *c;

	assert_int_equal(kymo_cursor_open(&c, q), 0);
	while (kymo_cursor_next(c, &b) > 0)
		for (size_t row = 0; row < b->n; row++) {
			if (b->item[row] == KYMO_ITEM_EVENT)
				ky_buf_printf(to, "%llu ",
					(unsigned long long)number_in_column(b, 0, row));
			else
				*lost += b->lost[row];
		}
	kymo_cursor_close(c);
}

static struct kymo_query *new_query(struct kymo_reader *r)
{
	struct kymo_query *q;

	assert_int_equal(kymo_query_new(&q, r), 0);
	assert_int_equal(kymo_query_column(q, "n", KYMO_UINT64, NULL), 0);
	assert_int_equal(kymo_query_losses(q, 1), 0);
	return q;
}

static void expect_numbers(struct kymo_query *q, bool (*wanted)(uint32_t i))
{
	struct ky_buf got = {0}, want = {0};
	uint64_t lost = 0;

	for (uint32_t i = 0; i < N_PACKETS * N_RECORDS; i++)
		if (wanted(i))
			ky_buf_printf(&want, "%u ", i);
	collect_numbers(q, &got, &lost);
	ky_buf_puts(&got, "");
	ky_buf_puts(&want, "");
	assert_string_equal(got.data, want.data);
	ky_buf_deinit(&got);
	ky_buf_deinit(&want);
	kymo_query_free(q);
}

static bool is_tick(uint32_t i)
{
	return i % 10 == 9;
}

static bool is_order(uint32_t i)
{
	return !is_tick(i);
}

static bool is_in_time(uint32_t i)
{
	return i >= 123456 && i <= 150001;
}

static bool is_filtered(uint32_t i)
{
	return is_order(i) && i % 2 == 0 && (i % 100 > 90 || i == 1000);
}

static bool is_in_context(uint32_t i)
{
	return i % 3 == 1 && i > 250000;
}

static void test_selection(void **state)
{
	struct kymo_reader *r = open_reader();
	struct kymo_reader_error error;
	struct kymo_query *q;

	(void)state;
	q = new_query(r);
	assert_int_equal(kymo_query_events(q, "*:t*ck,shop:none"), 0);
	expect_numbers(q, is_tick);
	q = new_query(r);
	assert_int_equal(kymo_query_events(q, "!*:tick"), 0);
	expect_numbers(q, is_order);
	q = new_query(r);
	assert_int_equal(kymo_query_class(q, 1), 0);
	assert_int_equal(kymo_query_class(q, 2), -EINVAL);
	expect_numbers(q, is_tick);
	q = new_query(r);
	assert_int_equal(kymo_query_time(q, 1234560, 1500010), 0);
	expect_numbers(q, is_in_time);
	q = new_query(r);
	assert_int_equal(
		kymo_query_filter(q, "name == \"e*\" && (delta < -90 || n == 1000)", &error), 0);
	expect_numbers(q, is_filtered);
	q = new_query(r);
	assert_int_equal(kymo_query_filter(q, "$ctx.vtid == 41 && n > 250000", &error), 0);
	expect_numbers(q, is_in_context);
	q = new_query(r);
	assert_int_equal(kymo_query_events(q, ""), -EINVAL);
	assert_int_equal(kymo_query_filter(q, "n ==", &error), -EINVAL);
	assert_true(error.text[0]);
	kymo_query_free(q);
	kymo_reader_close(r);
}

/* However many slices: each row once, in order, and each loss. */
static void test_slices(void **state)
{
	struct kymo_reader *r = open_reader();
	struct ky_buf whole = {0};
	uint64_t lost = 0;
	struct kymo_query *q = new_query(r);

	(void)state;
	collect_numbers(q, &whole, &lost);
	assert_int_equal(lost, 2);
	for (size_t n = 1; n < 100; n += 1 + n / 2) {
		struct kymo_query *parts[100];
		struct ky_buf got = {0};
		size_t n_parts;

		lost = 0;
		assert_int_equal(kymo_query_split(q, n, parts, &n_parts), 0);
		assert_true(n_parts <= n && n_parts >= KY_MIN(n, (size_t)20));
		for (size_t i = 0; i < n_parts; i++) {
			collect_numbers(parts[i], &got, &lost);
			kymo_query_free(parts[i]);
		}
		assert_int_equal(got.len, whole.len);
		assert_memory_equal(got.data, whole.data, whole.len);
		assert_int_equal(lost, 2);
		ky_buf_deinit(&got);
	}
	ky_buf_deinit(&whole);
	kymo_query_free(q);
	kymo_reader_close(r);
}

static void test_lines(void **state)
{
	struct kymo_reader *r = open_reader();
	const struct kymo_batch *b;
	struct kymo_cursor *c;
	struct kymo_query *q;
	const char *text;
	size_t len, n = 0;

	(void)state;
	assert_int_equal(kymo_query_new(&q, r), 0);
	assert_int_equal(kymo_query_lines(q, 1), 0);
	assert_int_equal(kymo_cursor_open(&c, q), 0);
	for (uint32_t i = 0; kymo_cursor_next(c, &b) > 0; n += b->n)
		for (size_t row = 0; row < b->n; row++, i++) {
			char wanted[64];

			assert_int_equal(
				kymo_batch_format(b, row, KYMO_FORMAT_TEXT, &text, &len), 0);
			snprintf(wanted, sizeof(wanted), "n = %u", i);
			assert_non_null(memmem(text, len, wanted, strlen(wanted)));
			assert_int_equal(text[len - 1], '\n');
		}
	assert_int_equal(n, N_PACKETS * N_RECORDS);
	kymo_cursor_close(c);
	kymo_query_free(q);
	assert_int_equal(kymo_query_new(&q, r), 0);
	assert_int_equal(kymo_cursor_open(&c, q), 0);
	assert_int_equal(kymo_cursor_next(c, &b), 1);
	assert_int_equal(kymo_batch_format(b, 0, KYMO_FORMAT_TEXT, &text, &len), -EINVAL);
	kymo_cursor_close(c);
	kymo_query_free(q);
	kymo_reader_close(r);
}

/* --- a trace that grows --- */

#define N_LATE 5

static char growing[] = "/tmp/kymo-growing-XXXXXX";

static void append_to_growing(const char *name, const void *data, size_t n)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", growing, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

/* A second stream, whose class of events the metadata had not at first. */
static void append_late(void)
{
	static const char class[] =
		"event { name = \"shop:late\"; id = 3; fields := struct { u32 _n; }; };\n";
	uint64_t time = (uint64_t)N_PACKETS * N_RECORDS * 10;
	size_t begin = stream.len;
	uint32_t bits;

	put_number(0xc1fc1fc1, 4);
	put_number(time, 8);
	put_number(0, 8);
	put_number(0, 4);
	put_number(4, 1);
	for (uint32_t i = 0; i < N_LATE; i++) {
		put_number(3, 1);
		put_number(time + i, 8);
		put_number(50, 4);
		put_number(N_PACKETS * N_RECORDS + i, 4);
	}
	bits = (uint32_t)(stream.len - begin) * 8;
	memcpy(stream.data + begin + 12, &bits, 4);
	memcpy(stream.data + begin + 16, &bits, 4);
	append_to_growing("metadata", class, strlen(class));
	append_to_growing("b", stream.data + begin, stream.len - begin);
	stream.len = begin;
}

/* Reads on. Each row's `n` is its number. */
static void read_rows(struct kymo_cursor *c, const struct kymo_reader *r, uint32_t *n)
{
	const struct kymo_batch *b;

	while (kymo_cursor_next(c, &b) > 0)
		for (size_t row = 0; row < b->n; row++, ++*n) {
			const char *name = kymo_reader_class(r, b->class_index[row])->name;

			assert_int_equal(number_in_column(b, 0, row), *n);
			assert_int_equal(b->ns[row], *n < N_PACKETS * N_RECORDS
							     ? *n * 10
							     : N_PACKETS * N_RECORDS * 9 + *n);
			assert_string_equal(name, *n >= N_PACKETS * N_RECORDS ? "shop:late"
						  : *n % 10 == 9	      ? "shop:tick"
									      : "shop:order");
		}
}

static void remove_growing(void)
{
	static const char *const names[] = {"metadata", "a", "b"};
	char path[64];

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", growing, names[i]);
		unlink(path);
	}
	rmdir(growing);
}

/*
 * Packets are written in pieces that end anywhere, the first head byte by byte. The cursor always
 * stops within a packet, also when the metadata grows.
 */
static void test_growing(void **state)
{
	const struct kymo_reader_options options = {.size = sizeof(options), .is_growing = 1};
	const char *path = growing;
	struct kymo_reader *r;
	struct kymo_query *q;
	struct kymo_cursor *c;
	size_t done = 0, column;
	uint32_t n = 0;

	(void)state;
	assert_non_null(mkdtemp(growing));
	append_to_growing("metadata", metadata, strlen(metadata));
	assert_int_equal(kymo_reader_open(&r, &path, 1, &options, NULL), 0);
	assert_int_equal(kymo_query_new(&q, r), 0);
	assert_int_equal(kymo_query_events(q, "shop:*"), 0);
	assert_int_equal(kymo_query_filter(q, "n >= 0", NULL), 0);
	assert_int_equal(kymo_query_column(q, "n", KYMO_UINT64, &column), 0);
	assert_int_equal(kymo_cursor_open(&c, q), 0);
	assert_int_equal(kymo_reader_refresh(r), 0);
	for (; done < HEAD_SIZE - 1; done++) {
		append_to_growing("a", stream.data + done, 1);
		assert_int_equal(kymo_reader_refresh(r), 0);
	}
	for (size_t step = 1; done < stream.len; step++) {
		size_t end = KY_MIN(stream.len, step * 1234567);
		uint32_t n_whole;

		append_to_growing("a", stream.data + done, end - done);
		done = end;
		if (step == 3)
			append_late();
		assert_int_equal(kymo_reader_refresh(r), 1);
		n_whole = (uint32_t)(done / (stream.len / N_PACKETS)) * N_RECORDS;
		kymo_cursor_until(c, (n_whole - 500) * 10);
		read_rows(c, r, &n);
		assert_in_range(n, n_whole - 500 - 2 * N_RECORDS, n_whole - 500);
	}
	assert_int_equal(kymo_reader_refresh(r), 0);
	kymo_cursor_until(c, INT64_MAX);
	read_rows(c, r, &n);
	assert_int_equal(n, N_PACKETS * N_RECORDS + N_LATE);
	assert_int_equal(kymo_reader_n_classes(r), 3);
	assert_int_equal(kymo_reader_n_streams(r), 2);
	kymo_cursor_close(c);
	kymo_query_free(q);
	kymo_reader_close(r);
	remove_growing();
}

static const char metadata_of_types[] =
	"trace { major = 1; minor = 8; byte_order = le; };\n"
	"typealias integer { size = 8; align = 8; } := u8;\n"
	"typealias integer { size = 64; align = 8; } := u64;\n"
	"typealias integer { size = 64; align = 8; signed = 1; } := s64;\n"
	"stream { event.header := struct { u8 id; }; };\n"
	"event { name = \"e\"; id = 0; fields := struct { s64 _wide; s64 _small; }; };\n"
	"event { name = \"e\"; id = 1; fields := struct { u64 _wide; u8 _small; }; };\n";

/* A type that holds all values, if there is one; otherwise exact columns have them. */
static void test_types(void **state)
{
	static const uint8_t records[] = {0, 1, 0, 0, 0, 0, 0, 0x20, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1,
		255, 255, 255, 255, 255, 255, 255, 255, 9};
	const struct kymo_batch *b;
	struct kymo_reader *r;
	struct kymo_query *q;
	struct kymo_cursor *c;

	(void)state;
	assert_int_equal(
		kymo_reader_open_memory(&r, metadata_of_types, sizeof(metadata_of_types) - 1,
			records, sizeof(records), NULL, NULL),
		0);
	assert_int_equal(kymo_query_new(&q, r), 0);
	assert_int_equal(kymo_query_column(q, "wide", KYMO_ANY, NULL), 0);
	assert_int_equal(kymo_query_column_type(q, 0), KYMO_DOUBLE);
	assert_int_equal(kymo_query_column(q, "small", KYMO_ANY, NULL), 0);
	assert_int_equal(kymo_query_column_type(q, 1), KYMO_INT64);
	for (size_t i = 2; i < 4; i++) {
		enum kymo_column_type type = i == 2 ? KYMO_INT64 : KYMO_UINT64;

		assert_int_equal(kymo_query_column(q, "wide", type, NULL), 0);
		assert_int_equal(kymo_query_exact(q, i), 0);
	}
	assert_int_equal(kymo_query_exact(q, 4), -EINVAL);
	assert_int_equal(kymo_cursor_open(&c, q), 0);
	assert_int_equal(kymo_cursor_next(c, &b), 1);
	assert_int_equal(b->n, 2);
	for (size_t row = 0; row < 2; row++) {
		assert_true(kymo_batch_has(b, 2 + row, row));
		assert_false(kymo_batch_has(b, 3 - row, row));
		assert_int_equal(number_in_column(b, 1, row), row ? 9 : 5);
	}
	assert_int_equal(number_in_column(b, 2, 0), (1LL << 53) + 1);
	assert_true(number_in_column(b, 3, 1) == UINT64_MAX);
	kymo_cursor_close(c);
	kymo_query_free(q);
	kymo_reader_close(r);
}

static void test_errors(void **state)
{
	const char *path = "/proc/nonexistent";
	struct kymo_reader_error error;
	struct kymo_reader *r = NULL;

	(void)state;
	assert_int_equal(kymo_reader_open(&r, &path, 1, NULL, &error), -ENOENT);
	assert_non_null(strstr(error.text, "/proc/nonexistent"));
	assert_null(r);
	kymo_reader_close(NULL);
	kymo_query_free(NULL);
	kymo_cursor_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_times_of_events),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_selection),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_errors),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, make_stream, free_stream);
}
