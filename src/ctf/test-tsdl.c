/* SPDX-License-Identifier: MIT */
/*
 * Has babeltrace2 read the metadata: a trace of one packet is written by hand, with every kind of
 * field and everything a hostile description could contain.
 */
#include "ctf/tsdl.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "ctf/packet.h"

static const struct kymo_enum_label signed_labels[] = {
	{"lowest", (uint64_t)INT64_MIN, (uint64_t)INT64_MIN},
	{"negative", (uint64_t)-5, (uint64_t)-1},
	{"a \"quoted\\ label\"\n\x1b[31m", 0, 0},
	{"gr\303\266\303\237e", 1, INT64_MAX},
};
static const struct kymo_enum_label unsigned_labels[] = {
	{"zero", 0, 0},
	{"many", 1, UINT64_MAX},
	{"zero", 2, 2},
};
static const struct kymo_enum_type signed_enum = {"se", signed_labels, 4, 1};
static const struct kymo_enum_type unsigned_enum = {"ue", unsigned_labels, 3, 0};

#define INT	 KYMO_FIELD_INT
#define UINT	 KYMO_FIELD_UINT
#define SEQUENCE KYMO_FIELD_SEQUENCE

static const struct kymo_field fields[] = {
	{INT, 0, 1, 0, 0, "int", NULL},
	{UINT, 0, 2, KYMO_FIELD_NETWORK, 0, "port", NULL},
	{UINT, 0, 4, KYMO_FIELD_HEX, 0, "mask", NULL},
	{KYMO_FIELD_FLOAT, 0, 4, 0, 0, "f", NULL},
	{KYMO_FIELD_FLOAT, 0, 8, KYMO_FIELD_NETWORK, 0, "d", NULL},
	{KYMO_FIELD_BOOL, 0, 1, 0, 0, "flag", NULL},
	{KYMO_FIELD_ENUM, 0, 8, 0, 0, "se", &signed_enum},
	{KYMO_FIELD_ENUM, 0, 8, 0, 0, "ue", &unsigned_enum},
	{KYMO_FIELD_STRING, 0, 0, 0, 0, "text", NULL},
	{KYMO_FIELD_ARRAY, INT, 2, 0, 2, "pair", NULL},
	{KYMO_FIELD_ARRAY, KYMO_FIELD_STRING, 0, 0, 2, "words", NULL},
	{KYMO_FIELD_ARRAY, KYMO_FIELD_ENUM, 1, 0, 1, "enums", &unsigned_enum},
	{SEQUENCE, KYMO_FIELD_BOOL, 1, 0, 0, "s", NULL},
	{UINT, 0, 1, 0, 0, "_s_length", NULL},
	{KYMO_FIELD_TEXT, 0, 1, 0, 4, "name", NULL},
	{KYMO_FIELD_TEXT_SEQUENCE, 0, 1, 0, 0, "ts", NULL},
	{KYMO_FIELD_BLOB, 0, 1, 0, 0, "blob", NULL},
	{0},
};

static const char payload[] = "\xff"
			      "\x01\xbb"
			      "\xef\xbe\xad\xde"
			      "\x00\x00\xc0\x3f"
			      "\x3f\xf8\0\0\0\0\0\0"
			      "\x01"
			      "\0\0\0\0\0\0\0\x80"
			      "\0\0\0\0\0\0\0\0"
			      "h\303\251\0"
			      "\xfe\xff\x03\x00"
			      "a\0"
			      "bc\0"
			      "\x07"
			      "\x02\0\0\0\x01\0"
			      "\x09"
			      "ab\0c"
			      "\x03\0\0\0xyz"
			      "\x02\0\0\0\x0a\xff";

static const char expected[] =
	"int = -1, port = 443, mask = 0xDEADBEEF, f = 1.5, d = 1.5, flag = 1, "
	"se = ( \"lowest\" : container = -9223372036854775808 ), ue = ( \"zero\" : container = 0 ), "
	"text = \"h\303\251\", pair = [ [0] = -2, [1] = 3 ], words = [ [0] = \"a\", [1] = \"bc\" ], "
	"enums = [ [0] = ( \"many\" : container = 7 ) ], _s_length_ = 2, s = [ [0] = 1, [1] = 0 ], "
	"_s_length = 9, name = \"ab\", _ts_length = 3, ts = \"xyz\", "
	"_blob_length = 2, blob = [ [0] = 0xA, [1] = 0xFF ] }";

static const struct kymo_field no_fields[] = {{0}};

/* One of each make. */
static const char context_payload[] = "\x05\0\0\0"
				      "name\0~~~~~~~~~~~"
				      "\x10\0\0\0\0\0\0\xff"
				      "\x01\0\0\0\0\0\0\0"
				      "\x02\0\0\0\0\0\0\0"
				      "text";
static const char context_text[] =
	"{ vpid = 5, procname = \"name\", ip = 0xFF00000000000010, "
	"callstack = [ [0] = 0x1, [1] = 0x2 ], _app_a_b = \"text\" }, { }";

static struct ky_context contexts[5];

static uint32_t make_contexts(void)
{
	static const struct {
		uint32_t kind;
		const char *name;
	} wanted[KY_ARRAY_SIZE(contexts)] = {
		{KY_CTX_VPID, "vpid"},
		{KY_CTX_PROCNAME, "procname"},
		{KY_CTX_IP, "ip"},
		{KY_CTX_CALLSTACK, "callstack"},
		{KY_CTX_APP, "_app_a_b"},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(wanted); i++) {
		contexts[i].type = ky_ctx_type(wanted[i].kind);
		strcpy(contexts[i].name, wanted[i].name);
		strcpy(contexts[i].argument, "2");
	}
	return KY_ARRAY_SIZE(wanted);
}

static struct ky_bytes encode_desc(
	uint8_t *buf, size_t size, const char *name, const struct kymo_field *f)
{
	struct kymo_event ev = {.size = sizeof(ev),
		.kind = KYMO_EVENT_PLAIN,
		.loglevel = KYMO_DEBUG,
		.provider = "shop.eu-1",
		.name = name,
		.fields = f};
	struct ky_writer w = {.buf = buf, .cap = size};
	const char *why = "";

	ky_desc_encode(&w, &ev);
	assert_int_equal(w.error, 0);
	if (ky_desc_check((struct ky_bytes){buf, (uint32_t)w.len}, &why) < 0)
		fail_msg("%s", why);
	return (struct ky_bytes){buf, (uint32_t)w.len};
}

static void write_file(const char *dir, const char *name, const void *data, size_t len)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static void write_metadata(const char *dir, const uint8_t uuid[16])
{
	struct ky_tsdl_trace t = {
		.hostname = "a \"host\"\\",
		.session = "demo",
		.boot_id = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564",
		.machine_id = "",
		.product_uuid = "",
		.uid = 1000,
		.abi_bits = 64,
		.clock = {.clock = KY_CLOCK_TSC,
			.freq = 2300000000,
			.offset_s = 1763712345,
			.offset = 123456,
			.description = "x86 time stamp counter"},
	};
	uint8_t desc[4096];
	struct ky_buf b = {0};

	memcpy(t.uuid, uuid, 16);
	ky_tsdl_trace(&b, &t);
	ky_tsdl_stream(&b, 0, KY_SET_PER_CPU, false);
	ky_tsdl_comment(&b, "hostile */ }; garbage {\n*/ /*", true);
	ky_tsdl_event(&b, 0, 0, encode_desc(desc, sizeof(desc), "all:kinds", fields), NULL, 0);
	ky_tsdl_stream(&b, 1, KY_SET_PER_THREAD, true);
	ky_tsdl_event(&b, 1, 0, encode_desc(desc, sizeof(desc), "nothing", no_fields), contexts,
		make_contexts());
	assert_int_equal(b.error, 0);
	write_file(dir, "metadata", b.data, b.len);
	ky_buf_deinit(&b);
}

static void write_stream(const char *dir, const char *name, uint32_t stream_id,
	const uint8_t uuid[16], const void *data, size_t len)
{
	static const uint8_t extended[13] = {31};
	struct ky_ctf_packet p = {.stream_id = stream_id, .cpu_id = 3};

	if (stream_id)
		p.owner = (struct ky_owner){.pid = 17, .tid = 18, .name = "worker"};
	uint8_t buf[1024];

	memcpy(p.uuid, uuid, 16);
	ky_ctf_packet_finish(&p, (uint32_t)(sizeof(extended) + len));
	memcpy(buf, &p, sizeof(p));
	memcpy(buf + sizeof(p), extended, sizeof(extended));
	memcpy(buf + sizeof(p) + sizeof(extended), data, len);
	write_file(dir, name, buf, sizeof(p) + sizeof(extended) + len);
}

/* All that babeltrace2 says about dir, warnings too. */
static void read_back(const char *dir, char *out, size_t size)
{
	char command[PATH_MAX + 32];
	FILE *f;

	snprintf(command, sizeof(command), "LC_ALL=C babeltrace2 %s 2>&1", dir);
	f = popen(command, "r");
	assert_non_null(f);
	out[fread(out, 1, size - 1, f)] = '\0';
	if (pclose(f))
		fail_msg("%s", out);
}

static void test_babeltrace_reads_it(void **state)
{
	static const uint8_t uuid[16] = {1, 2, 3};
	char dir[] = "/tmp/kymo-tsdl-XXXXXX", out[8192], command[64];

	if (system("babeltrace2 --version >/dev/null 2>&1")) {
		print_message("skipped: babeltrace2 is not installed\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	write_metadata(dir, uuid);
	write_stream(dir, "c_0", 0, uuid, payload, sizeof(payload) - 1);
	write_stream(dir, "c-thread_0", 1, uuid, context_payload, sizeof(context_payload));
	read_back(dir, out, sizeof(out));
	if (!strstr(out, expected))
		fail_msg("not as expected: %s", out);
	assert_non_null(strstr(out, "a \"host\"\\ shop.eu-1:all:kinds: { cpu_id = 3 }, { int"));
	assert_non_null(strstr(
		out, "shop.eu-1:nothing: { vpid = 17, vtid = 18, procname = \"worker\" }, { vpid"));
	if (!strstr(out, context_text))
		fail_msg("not as expected: %s", out);
	assert_null(strstr(out, "WARN"));
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_strings_are_escaped(void **state)
{
	uint8_t desc[4096];
	struct ky_buf b = {0};

	ky_tsdl_event(&b, 0, 7, encode_desc(desc, sizeof(desc), "e", fields), NULL, 0);
	assert_non_null(strstr(b.data, "\"a \\\"quoted\\\\ label\\\"\\012\\033[31m\" = 0,"));
	assert_non_null(strstr(b.data, "\"negative\" = -5 ... -1,"));
	assert_non_null(strstr(b.data, "\"many\" = 1 ... 18446744073709551615,"));
	assert_non_null(strstr(b.data, "\tid = 7;\n"));
	ky_buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_babeltrace_reads_it),
		cmocka_unit_test(test_strings_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
