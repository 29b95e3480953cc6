/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "merge/clock.h"

#define ROUNDS 200
#define HOSTS  5

/* Messages between hosts whose clocks are wrong: the result is right within its error. */
static void test_random(void **state)
{
	unsigned seed = 1;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t wrong[HOSTS], ns;
		struct offset found[HOSTS];
		struct offsets o;

		assert_int_equal(offsets_init(&o, HOSTS), 0);
		for (int i = 0; i < HOSTS; i++)
			wrong[i] = rand_r(&seed) % 2000000000 - 1000000000;
		for (int i = rand_r(&seed) % 60; i >= 0; i--) {
			const size_t a = rand_r(&seed) % HOSTS, b = rand_r(&seed) % HOSTS;
			const int64_t sent = rand_r(&seed), took = rand_r(&seed) % 1000000;

			offsets_add(&o, a, sent + wrong[a], b, sent + took + wrong[b]);
		}
		assert_int_equal(offsets_solve(&o, found, &ns), 0);
		assert_int_equal(found[0].shift_ns, 0);
		for (int i = 0; i < HOSTS; i++) {
			const int64_t right = wrong[0] - wrong[i];

			if (found[i].error_ns != OFFSETS_UNKNOWN)
				assert_true(llabs(found[i].shift_ns - right) <= found[i].error_ns);
			/* All bounds hold after the shifts. */
			for (int j = 0; j < HOSTS; j++)
				assert_true(o.most[i * HOSTS + j] == OFFSETS_UNKNOWN ||
					    found[j].shift_ns - found[i].shift_ns <=
						    o.most[i * HOSTS + j]);
		}
		offsets_deinit(&o);
	}
}

static void test_known(void **state)
{
	struct offset found[3];
	struct offsets o;
	int64_t ns;

	assert_int_equal(offsets_init(&o, 3), 0);
	offsets_add(&o, 0, 1000, 1, 400); /* host 1 is at least 600 late */
	offsets_add(&o, 1, 500, 0, 1301); /* and at most 801 */
	offsets_add(&o, 2, 50, 0, 40);
	assert_int_equal(offsets_solve(&o, found, &ns), 0);
	assert_int_equal(found[1].shift_ns, 700);
	assert_int_equal(found[1].error_ns, 101);
	assert_int_equal(found[2].shift_ns, -10);
	assert_true(found[2].error_ns == OFFSETS_UNKNOWN);
	offsets_deinit(&o);

	assert_int_equal(offsets_init(&o, 3), 0);
	offsets_add(&o, 0, 1000, 1, 400);
	offsets_add(&o, 1, 500, 2, 500);
	offsets_add(&o, 2, 500, 0, 1050);
	assert_int_equal(offsets_solve(&o, found, &ns), -EDOM);
	assert_int_equal(ns, 50);
	offsets_deinit(&o);
}

static const char text[] =
	"/* CTF 1.8 */\n\ntrace {\n};\n\nenv {\n\thostname = \"h\";\n};\n\nclock {\n"
	"\tname = \"kymo_clock\";\n\tfreq = 2000000000;\n\toffset_s = 100;\n\toffset = 10;\n"
	"\tabsolute = FALSE;\n};\n\nevent {\n\tname = \"offset = 1;\";\n};\n";

static void test_rewrite(void **state)
{
	const struct clock_note note = {.source = "flows"}, other = {"round-trip", "k1"};
	struct offset o = {.shift_ns = -7, .error_ns = 3};
	struct ky_buf b = {0}, again = {0};

	assert_int_equal(clock_rewrite(&b, text, strlen(text), &o, &note), 0);
	ky_buf_append(&b, "", 1);
	assert_string_equal(b.data,
		"/* CTF 1.8 */\n\ntrace {\n};\n\nenv {\n\tclock_source = \"flows\";\n"
		"\tclock_shift_ns = -7;\n"
		"\tclock_error_ns = 3;\n\thostname = \"h\";\n};\n\nclock {\n\tname = \"kymo_clock\";\n"
		"\tfreq = 2000000000;\n\toffset_s = 99;\n\toffset = 1999999996;\n\tabsolute = TRUE;\n};\n\n"
		"event {\n\tname = \"offset = 1;\";\n};\n");
	/* A second note replaces the first one. */
	o.error_ns = 4;
	assert_int_equal(clock_rewrite(&again, b.data, b.len - 1, &o, &other), 0);
	ky_buf_append(&again, "", 1);
	assert_non_null(strstr(again.data,
		"env {\n\tclock_source = \"round-trip\";\n\tclock_shift_ns = -7;\n"
		"\tclock_error_ns = 4;\n\tclock_reference = \"k1\";\n\thostname = \"h\";\n};\n"));
	ky_buf_deinit(&again);
	b.len = 0;
	o.shift_ns = -101 * INT64_C(1000000000);
	assert_int_equal(clock_rewrite(&b, text, strlen(text), &o, &note), -ERANGE);
	o.shift_ns = 0;
	/* A text that was cut off has no half of a clock. */
	for (size_t n = 0; n < strlen(text) - 40; n++) {
		char *copy = malloc(n + 1);

		memcpy(copy, text, n);
		b.len = 0;
		if (clock_rewrite(&b, copy, n, &o, &note) == 0)
			assert_non_null(memmem(b.data, b.len, "TRUE;\n};", 8));
		free(copy);
	}
	ky_buf_deinit(&b);
}

static void test_time(void **state)
{
	static const char monotonic[] =
		"\nenv {\n};\n\nclock {\n\tdescription = \"CLOCK_MONOTONIC\";\n\tfreq = 1000000000;\n"
		"\toffset_s = 7;\n\toffset = 1;\n\tabsolute = FALSE;\n};\n";
	int64_t ns;

	assert_int_equal(clock_time(text, strlen(text), 4000000000, 5, &ns), 0);
	assert_int_equal(ns, 102000000005);
	assert_int_equal(clock_time(monotonic, strlen(monotonic), 4000000000, 5, &ns), 0);
	assert_int_equal(ns, 7000000006);
	assert_int_equal(clock_time(monotonic, strlen(monotonic), 0, UINT64_MAX, &ns), -ERANGE);
	assert_int_equal(clock_time(text, 20, 0, 0, &ns), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_rewrite),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
