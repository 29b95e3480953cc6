/* SPDX-License-Identifier: MIT */
/*
 * Runs the parser and the layout compiler on whole texts. They must compile each text of
 * test/data/ok, and refuse each text of test/data/bad with a reason and a place.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buf.h"
#include "reader/layout.h"
#include "reader/metadata.h"
#include "reader/tsdl.h"

struct parsed {
	struct ky_tsdl t;
	struct ky_layout l;
	struct ky_tsdl_error error;
	char why[160];
	int result;
};

static void parse_and_compile(struct parsed *p, const char *text, size_t len)
{
	p->why[0] = '\0';
	p->result = ky_tsdl_parse(&p->t, text, len, &p->error);
	if (!p->result)
		p->result = ky_layout_compile(&p->l, &p->t, p->why, sizeof(p->why));
}

static void parse_file(struct parsed *p, const char *path)
{
	struct ky_buf text = {0};

	assert_int_equal(ky_metadata_read(&text, path), 0);
	parse_and_compile(p, text.data ? text.data : "", text.len);
	ky_buf_deinit(&text);
}

static void parse_data(struct parsed *p, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.tsdl", TEST_DATA, name);
	parse_file(p, path);
}

static void for_each(const char *pattern, void (*check)(struct parsed *p, const char *path))
{
	char path[512];
	struct parsed p;
	glob_t g;

	snprintf(path, sizeof(path), "%s/%s", TEST_DATA, pattern);
	assert_int_equal(glob(path, 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		parse_file(&p, g.gl_pathv[i]);
		check(&p, g.gl_pathv[i]);
		ky_tsdl_deinit(&p.t);
	}
	globfree(&g);
}

static void check_ok(struct parsed *p, const char *path)
{
	if (p->result)
		fail_msg("%s:%u:%u: %s%s", path, p->error.line, p->error.column, p->error.text,
			p->why);
}

static void check_bad(struct parsed *p, const char *path)
{
	if (p->result != -EINVAL)
		fail_msg("%s was accepted", path);
	if (!p->why[0] && (!p->error.text[0] || !p->error.line || !p->error.column))
		fail_msg("%s: no reason, or no place", path);
}

static void test_ok(void **state)
{
	for_each("ok/*.tsdl", check_ok);
}

static void test_bad(void **state)
{
	for_each("bad/*.tsdl", check_bad);
}

/* Each prefix of a valid text is refused, or gives a part of its events. */
static void test_prefixes(void **state)
{
	struct ky_buf text = {0};
	struct parsed p;
	size_t n = 0;

	assert_int_equal(ky_metadata_read(&text, TEST_DATA "/ok/kernel.tsdl"), 0);
	for (size_t len = 0; len < text.len; len++) {
		char *copy = malloc(len + 1); /* sanitizers notice a read beyond its end */

		memcpy(copy, text.data, len);
		parse_and_compile(&p, copy, len);
		assert_true(p.result == 0 || p.result == -EINVAL);
		assert_true(p.result || p.t.n_events >= n);
		n = p.result ? n : p.t.n_events;
		ky_tsdl_deinit(&p.t);
		free(copy);
	}
	assert_int_equal(n, 1);
	ky_buf_deinit(&text);
}

static void test_place(void **state)
{
	static const char text[] =
		"trace { byte_order = le; };\n/* a\nb */ stream {\n  id = \"x\";\n};\n";
	struct parsed p;

	parse_and_compile(&p, text, strlen(text));
	assert_int_equal(p.result, -EINVAL);
	assert_int_equal(p.error.line, 4);
	assert_non_null(strstr(p.error.text, "number"));
	ky_tsdl_deinit(&p.t);
}

static void test_kernel(void **state)
{
	const struct ky_stream_class *s;
	const struct ky_node *fields;
	struct parsed p;

	parse_data(&p, "ok/kernel");
	assert_true(p.t.big_endian && p.t.has_uuid);
	assert_int_equal(p.t.uuid[15], 0x64);
	assert_string_equal(ky_tsdl_env(&p.t, "hostname")->text, "h");
	assert_int_equal(ky_tsdl_env(&p.t, "tracer_major")->number, 2);
	assert_string_equal(ky_tsdl_env(&p.t, "tracer_major")->digits, "2");
	assert_null(ky_tsdl_env(&p.t, "none"));
	s = ky_layout_stream(&p.l, 0);
	assert_non_null(s);
	assert_null(ky_layout_stream(&p.l, 1));
	assert_string_equal(s->clock->name, "monotonic");
	assert_string_equal(ky_stream_class_event(s, 0)->name, "sched_switch");
	assert_null(ky_stream_class_event(s, 1));
	fields = s->events[0].fields;
	assert_int_equal(fields->n, 7);
	assert_true(fields->children[0].is_text);
	assert_string_equal(fields->children[0].name, "comm");
	assert_int_equal(fields->children[1].base, 16);
	assert_true(fields->children[1].big_endian);
	assert_int_equal(fields->children[3].type->ranges[2].lo, 0x11);
	assert_int_equal(fields->children[5].from, fields->children[4].slot);
	assert_int_equal(fields->children[6].children[0].from, fields->children[4].slot);
	ky_tsdl_deinit(&p.t);
}

static void test_scopes(void **state)
{
	const struct ky_node *f;
	struct parsed p;

	parse_data(&p, "ok/scopes");
	assert_int_equal(p.result, 0);
	f = p.l.streams[0].events[0].fields;
	assert_int_equal(f->children[0].align, 32);
	assert_int_equal(f->children[0].children[0].size, 8);
	assert_int_equal(f->children[0].children[1].children[0].size, 16);
	assert_int_equal(f->children[2].choices->segments.n, 2);
	assert_ptr_equal(f->children[3].depends_on, &p.l.streams[0].packet_context->children[0]);
	assert_ptr_equal(f->children[4].depends_on, &f->children[0].children[1].children[0]);
	ky_tsdl_deinit(&p.t);
}

static void test_cut(void **state)
{
	struct parsed p;

	parse_data(&p, "ok/cut");
	assert_int_equal(p.result, 0);
	assert_true(p.t.is_cut);
	assert_int_equal(p.t.n_events, 1);
	ky_tsdl_deinit(&p.t);
}

/* The text ends anywhere within its last block, or within a comment behind it. */
static void test_cut_anywhere(void **state)
{
	static const char whole[] =
		"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };"
		"event { name = a; fields := struct { string s; }; };";
	static const char cut[] =
		"event { name = \"b\\x41\"; id = 0x1; fields := struct {"
		"	enum : integer { size = 8; } { A = 0, \"B\" = 1 ... 3 } x\\u00e9;"
		"	integer { size = 8; } y[ 2 ]; // comment\n"
		"}; }; /* gap */";
	char text[sizeof(whole) + sizeof(cut)];
	struct ky_tsdl_error error;
	struct ky_tsdl t;

	snprintf(text, sizeof(text), "%s%s", whole, cut);
	for (size_t len = sizeof(whole); len < strlen(text); len++) {
		if (ky_tsdl_parse(&t, text, len, &error))
			fail_msg("%.*s: %s", (int)len, text, error.text);
		assert_in_range(t.n_events, 1, 2);
		assert_true(t.is_cut || t.n_events == 2);
		ky_tsdl_deinit(&t);
	}
}

static void test_clock(void **state)
{
	struct ky_trace_clock ns = {.freq = 1000000000, .base_ns = 5};
	struct ky_trace_clock slow = {.freq = 1, .base_ns = INT64_MAX - 1};
	struct ky_trace_clock tsc = {.freq = 2500000000};

	assert_int_equal(ky_trace_clock_ns(&ns, 0x20000000000001), 0x20000000000006);
	assert_int_equal(ky_trace_clock_ns(&tsc, 10), 4);
	assert_int_equal(ky_trace_clock_ns(&slow, 1), INT64_MAX);
	assert_int_equal(ky_trace_clock_ns(&slow, UINT64_MAX), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ok),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
