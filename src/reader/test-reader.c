/* SPDX-License-Identifier: MIT */
/* Golden packets: bytes of the trace format (docs/trace-format.md) in, text and JSON out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/format.h"
#include "reader/reader.h"

static const char metadata[] =
	"trace { major = 1; minor = 8; byte_order = le; packet.header := struct {\n"
	"	integer { size = 32; align = 8; } magic; integer { size = 32; align = 8; } stream_id; }; };\n"
	"env { hostname = \"h\"; };\n"
	"clock { name = c; freq = 1000000000; };\n"
	"typealias integer { size = 27; map = clock.c.value; } := t27;\n"
	"typealias integer { size = 64; align = 8; map = clock.c.value; } := t64;\n"
	"struct header {\n"
	"	enum : integer { size = 5; } { compact = 0 ... 30, extended = 31 } id;\n"
	"	variant <id> { struct { t27 timestamp; } compact;\n"
	"		struct { integer { size = 32; align = 8; } id; t64 timestamp; } extended; } v;\n"
	"} align(8);\n"
	"stream { event.header := struct header; packet.context := struct {\n"
	"	t64 timestamp_begin; integer { size = 32; align = 8; } content_size;\n"
	"	integer { size = 32; align = 8; } packet_size;\n"
	"	integer { size = 8; align = 8; } events_discarded; integer { size = 8; align = 8; } cpu_id; }; };\n"
	"event { name = \"p:n\"; id = 1; fields := struct {\n"
	"	integer { size = 16; align = 8; signed = 1; } _v; string _s; }; };\n"
	"event { name = \"p:numbers\"; id = 2; fields := struct { integer { size = 8; align = 8; } n;\n"
	"	integer { size = 32; align = 8; } _a[n]; }; };\n"
	"event { name = \"p:texts\"; id = 3; fields := struct { string _s;\n"
	"	integer { size = 8; align = 8; encoding = UTF8; } _t[100]; }; };\n"
	"event { name = \"p:far\"; id = 300; };\n";

struct packet {
	uint32_t magic, stream_id;
	uint64_t begin;
	uint32_t content_bits, packet_bits;
	uint8_t discarded, cpu;
	uint8_t records[64];
} __attribute__((packed));

#define HEAD offsetof(struct packet, records)

static void add_to_packet(struct packet *p, const void *bytes, size_t n)
{
	memcpy((uint8_t *)p + p->content_bits / 8, bytes, n);
	p->content_bits += 8 * (uint32_t)n;
}

static void start_packet(struct packet *p, uint64_t time, uint8_t discarded)
{
	*p = (struct packet){.magic = 0xc1fc1fc1,
		.begin = time,
		.content_bits = HEAD * 8,
		.packet_bits = sizeof(*p) * 8,
		.discarded = discarded,
		.cpu = 2};
}

static void add_near(struct packet *p, uint64_t time, int16_t v, const char *s)
{
	uint32_t head = 1 | (uint32_t)(time << 5);

	add_to_packet(p, &head, sizeof(head));
	add_to_packet(p, &v, sizeof(v));
	add_to_packet(p, s, strlen(s) + 1);
}

static void add_far(struct packet *p, uint64_t time)
{
	uint32_t id = 300;

	add_to_packet(p, "\x1f", 1);
	add_to_packet(p, &id, sizeof(id));
	add_to_packet(p, &time, sizeof(time));
}

static void append_warning(void *arg, const char *text)
{
	ky_buf_printf(arg, "! %s\n", text);
}

/* The origin of the event in each object. */
#define ORIGIN "\"host\": \"h\", \"trace\": \"memory\", "

static size_t n_damaged; /* items of the last stream */

/* All items of a stream, one line each; of damage none. want: of all classes; 0: no selection. */
static char *read_as(const void *stream, size_t size, bool json, uint8_t want)
{
	struct ky_buf out = {0};
	struct ky_trace_reader_options options = {.warn = append_warning, .arg = &out};
	struct ky_format format = {0};
	struct ky_select all = KY_SELECT_ALL;
	uint8_t wanted[16];
	struct ky_trace_reader *r;
	struct ky_cursor *c;
	struct ky_values values = {0};
	struct ky_item item;
	char why[256];

	n_damaged = 0;

	assert_int_equal(ky_trace_reader_open_memory(&r, metadata, strlen(metadata), stream, size,
				 &options, why, sizeof(why)),
		0);
	memset(wanted, want, sizeof(wanted));
	all.wanted = want ? wanted : NULL;
	assert_true(r->n_classes <= sizeof(wanted));
	assert_int_equal(ky_cursor_open(&c, r, &all, &options), 0);
	while (ky_cursor_next(c, &item, &values) > 0) {
		if (item.kind == KY_ITEM_DAMAGED)
			n_damaged++;
		else if (item.kind != KY_ITEM_EVENT)
			ky_buf_printf(&out, "lost %llu\n", (unsigned long long)item.lost.n);
		else if (json)
			ky_format_json(&format, &out, &item);
		else
			ky_format_text(&format, &out, &item);
		values.n = 0;
	}
	ky_cursor_close(c);
	ky_trace_reader_close(r);
	free(values.v);
	ky_buf_puts(&out, "");
	return out.data;
}

/* From the values, and from the bytes of scopes: the same. */
static char *read_all(const void *stream, size_t size, bool json)
{
	char *values = read_as(stream, size, json, 0);
	char *bytes = read_as(stream, size, json, KY_WANT_EVENT | KY_WANT_VALUES | KY_WANT_LINE);

	assert_string_equal(bytes, values);
	free(bytes);
	return values;
}

static void expect_output(const void *stream, size_t size, bool json, const char *wanted)
{
	char *got = read_all(stream, size, json);

	assert_string_equal(got, wanted);
	free(got);
}

static void test_text(void **state)
{
	struct packet p[2];

	start_packet(&p[0], 0x7fffff0, 0);
	add_near(&p[0], 0x7fffff1, -2, "a\n");
	add_near(&p[0], 0x8000000, 3, ""); /* the 27 bits begin anew */
	add_far(&p[0], 0x100000000);
	start_packet(&p[1], 0x100000000, 0);
	add_near(&p[1], 0x100000001, 4, "x");
	expect_output(p, sizeof(p), false,
		"[00:00:00.134217713] (+?.?\?\?\?\?\?\?\?\?) h p:n: { cpu_id = 2 }, { v = -2, s = \"a\\n\" }\n"
		"[00:00:00.134217728] (+0.000000015) h p:n: { cpu_id = 2 }, { v = 3, s = \"\" }\n"
		"[00:00:04.294967296] (+4.160749568) h p:far: { cpu_id = 2 }\n"
		"[00:00:04.294967297] (+0.000000001) h p:n: { cpu_id = 2 }, { v = 4, s = \"x\" }\n");
}

static void test_json(void **state)
{
	struct packet p;

	start_packet(&p, 0, 0);
	add_near(&p, 5, -32768, "\"\xc3\xa9\xff\x01\x7f");
	expect_output(&p, sizeof(p), true,
		"{\"timestamp\": 5, \"time\": \"1970-01-01T00:00:00.000000005Z\", " ORIGIN
		"\"name\": \"p:n\", "
		"\"cpu\": 2, \"fields\": {\"v\": -32768, \"s\": \"\\\"\xc3\xa9\\ufffd\\u0001\\u007f\"}}\n");
}

/* The counter has 8 bits: it wraps from 220 to 4, and falls from 4 to 3. */
static void test_lost(void **state)
{
	struct packet p[5];

	start_packet(&p[0], 0, 100);
	start_packet(&p[1], 0, 220);
	start_packet(&p[2], 0, 4);
	start_packet(&p[3], 0, 3);
	start_packet(&p[4], 0, 5);
	expect_output(p, sizeof(p), false, "lost 100\nlost 120\nlost 40\nlost 1\n");
}

static void test_damage(void **state)
{
	struct packet p[3];

	for (int i = 0; i < 3; i++) {
		start_packet(&p[i], 10 * i, 0);
		add_near(&p[i], 10 * i, (int16_t)i, "s");
		add_near(&p[i], 10 * i + 1, (int16_t)i, "t");
	}
	p[1].records[8] = 30; /* no such event */
	expect_output(p, sizeof(p), true,
		"{\"timestamp\": 0, \"time\": \"1970-01-01T00:00:00.000000000Z\", " ORIGIN
		"\"name\": \"p:n\", \"cpu\": 2, \"fields\": {\"v\": 0, \"s\": \"s\"}}\n"
		"{\"timestamp\": 1, \"time\": \"1970-01-01T00:00:00.000000001Z\", " ORIGIN
		"\"name\": \"p:n\", \"cpu\": 2, \"fields\": {\"v\": 0, \"s\": \"t\"}}\n"
		"{\"timestamp\": 10, \"time\": \"1970-01-01T00:00:00.000000010Z\", " ORIGIN
		"\"name\": \"p:n\", \"cpu\": 2, \"fields\": {\"v\": 1, \"s\": \"s\"}}\n"
		"{\"timestamp\": 20, \"time\": \"1970-01-01T00:00:00.000000020Z\", " ORIGIN
		"\"name\": \"p:n\", \"cpu\": 2, \"fields\": {\"v\": 2, \"s\": \"s\"}}\n"
		"{\"timestamp\": 21, \"time\": \"1970-01-01T00:00:00.000000021Z\", " ORIGIN
		"\"name\": \"p:n\", \"cpu\": 2, \"fields\": {\"v\": 2, \"s\": \"t\"}}\n"
		"! memory/stream is damaged in 1 place: events are missing\n");
	assert_int_equal(n_damaged, 1);
}

/*
 * The search for the next packet begins where a record's damage is. Its fields before the damage
 * are whole: here one of them begins as a packet does.
 */
static void test_search_behind_whole_fields(void **state)
{
	static const uint32_t head = 3;
	struct packet p[2];
	uint8_t file[HEAD + sizeof(head) + sizeof(p[1])];

	start_packet(&p[0], 0, 0);
	p[0].packet_bits = p[0].content_bits = 8 * 4096; /* the file has less */
	start_packet(&p[1], 0, 0);
	add_far(&p[1], 1);
	memcpy(file, &p[0], HEAD);
	memcpy(file + HEAD, &head, sizeof(head));
	memcpy(file + HEAD + sizeof(head), &p[1], sizeof(p[1]));
	expect_output(file, sizeof(file), false,
		"! memory/stream ends within a packet: the events before that place were read\n");
}

/* Adds an event that has room for two numbers, and says that it has n. */
static void add_numbers(struct packet *p, uint8_t n)
{
	static const uint32_t head = 2, numbers[2] = {7, 8};

	add_to_packet(p, &head, sizeof(head));
	add_to_packet(p, &n, sizeof(n));
	add_to_packet(p, numbers, sizeof(numbers));
}

/* An array of numbers does not reach beyond its packet: not in elements, and not in bits. */
static void test_array_of_numbers(void **state)
{
	static const uint8_t too_many[] = {3, 40, 255};
	struct packet p;

	start_packet(&p, 0, 0);
	add_numbers(&p, 2);
	expect_output(&p, sizeof(p), false,
		"[00:00:00.000000000] (+?.?\?\?\?\?\?\?\?\?) h p:numbers: { cpu_id = 2 }, "
		"{ n = 2, a = [ [0] = 7, [1] = 8 ] }\n");
	for (size_t i = 0; i < sizeof(too_many); i++) {
		start_packet(&p, 0, 0);
		add_numbers(&p, too_many[i]);
		expect_output(&p, sizeof(p), false,
			"! memory/stream is damaged in 1 place: events are missing\n");
	}
}

/* Wherever the file ends, nothing behind its end is touched (the sanitizers watch). */
static void test_every_length(void **state)
{
	struct packet p[2];

	for (int i = 0; i < 2; i++) {
		start_packet(&p[i], 10 * i, (uint8_t)i);
		add_near(&p[i], 10 * i, 1, "text");
		add_far(&p[i], 10 * i + 1);
	}
	for (size_t n = 0; n < sizeof(p); n++) {
		char *copy = malloc(n + 1);

		memcpy(copy, p, n);
		free(read_all(copy, n, n % 2));
		free(copy);
	}
}

static void write_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Returns the buffer of the only event, which a cursor reads with buffers of the pool. */
static const struct ky_packet *read_with(struct ky_packets *pool, const struct ky_trace_reader *r)
{
	const struct ky_packet *packet;
	struct ky_select all = KY_SELECT_ALL;
	struct ky_cursor *c;
	struct ky_item item;

	assert_int_equal(ky_cursor_open(&c, r, &all, NULL), 0);
	ky_cursor_set_buffers(c, pool);
	assert_int_equal(ky_cursor_next(c, &item, NULL), 1);
	packet = item.packet;
	assert_int_equal(ky_cursor_next(c, &item, NULL), 0);
	ky_cursor_close(c);
	return packet;
}

/* A cursor leaves its buffers to the next one. */
static void test_buffers(void **state)
{
	char dir[] = "/tmp/kymo-buffers-XXXXXX", metadata_path[64], stream_path[64], why[256];
	const struct ky_packet *packet;
	struct ky_packets pool = {0};
	struct ky_trace_reader *r;
	struct packet p;

	start_packet(&p, 0, 0);
	add_near(&p, 5, 1, "text");
	assert_non_null(mkdtemp(dir));
	snprintf(metadata_path, sizeof(metadata_path), "%s/metadata", dir);
	snprintf(stream_path, sizeof(stream_path), "%s/stream", dir);
	write_file(metadata_path, metadata, strlen(metadata));
	write_file(stream_path, &p, sizeof(p));
	assert_int_equal(
		ky_trace_reader_open(&r, (const char *const[]){dir}, 1, NULL, why, sizeof(why)), 0);
	packet = read_with(&pool, r);
	assert_ptr_equal(pool.unused, packet);
	assert_ptr_equal(read_with(&pool, r), packet);
	assert_ptr_equal(pool.unused, packet);
	assert_null(packet->next);
	ky_packets_deinit(&pool);
	ky_trace_reader_close(r);
	unlink(metadata_path);
	unlink(stream_path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_search_behind_whole_fields),
		cmocka_unit_test(test_array_of_numbers),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_buffers),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
