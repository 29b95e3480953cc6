/* SPDX-License-Identifier: MIT */
/*
 * Segments against a plain search through all ranges; names; both with a fixed seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reader/names.h"
#include "reader/segments.h"

static bool is_value_in_range(const struct ky_range *r, uint64_t v, bool is_signed)
{
	return is_signed ? (int64_t)v >= (int64_t)r->lo && (int64_t)v <= (int64_t)r->hi
			 : v >= r->lo && v <= r->hi;
}

static void check_value(const struct ky_segments *s, const struct ky_range *ranges, uint32_t n,
	uint64_t v, unsigned max)
{
	const struct ky_segment *found = ky_segments_find(s, v);
	uint32_t n_found = 0;

	for (uint32_t i = 0; i < n && n_found < max; i++) {
		if (!is_value_in_range(&ranges[i], v, s->is_signed))
			continue;
		assert_non_null(found);
		assert_true(n_found < found->n);
		assert_int_equal(s->indexes[found->first + n_found], i);
		n_found++;
	}
	assert_int_equal(n_found, found ? found->n : 0);
}

static uint64_t random_value(unsigned seed[1])
{
	static const uint64_t edges[] = {0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN};
	int r = rand_r(seed);

	return r % 4 ? (uint64_t)(r / 4 % 300) - 150 : edges[r / 4 % KY_ARRAY_SIZE(edges)];
}

static void check_random(unsigned seed, bool is_signed, unsigned max)
{
	struct ky_arena arena = {0};
	struct ky_range ranges[200];
	struct ky_segments s;
	uint32_t n = (uint32_t)rand_r(&seed) % 200;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t a = random_value(&seed), b = random_value(&seed);
		struct ky_range up = {a, b}, down = {b, a};

		ranges[i] = is_value_in_range(&up, a, is_signed) ? up : down;
	}
	assert_int_equal(ky_segments_build(&s, &arena, ranges, n, is_signed, max), 0);
	for (uint32_t i = 0; i < n; i++)
		for (uint64_t d = 0; d < 3; d++) {
			check_value(&s, ranges, n, ranges[i].lo + d - 1, max);
			check_value(&s, ranges, n, ranges[i].hi + d - 1, max);
		}
	ky_arena_deinit(&arena);
}

static void test_segments(void **state)
{
	for (unsigned seed = 0; seed < 200; seed++)
		check_random(seed, seed % 2, seed % 3 ? 3 : 1);
}

/* 100,000 ranges, each within the one before: as many segments, found at once. */
static void test_nested(void **state)
{
	struct ky_arena arena = {0};
	uint64_t n = 100000;
	struct ky_range *ranges = calloc(n, sizeof(*ranges));
	struct ky_segments s;

	for (uint64_t i = 0; i < n; i++)
		ranges[i] = (struct ky_range){i, 2 * n - i};
	assert_int_equal(ky_segments_build(&s, &arena, ranges, n, false, 2), 0);
	assert_int_equal(s.n, 2 * n - 1);
	check_value(&s, ranges, (uint32_t)n, 2 * n - 77777, 2);
	free(ranges);
	ky_arena_deinit(&arena);
}

static void test_names(void **state)
{
	struct ky_arena arena = {0};
	struct ky_names names;
	const char *kept[1000];
	char text[16];

	ky_names_init(&names, &arena);
	assert_int_equal(ky_names_find(&names, &arena, "x"), UINT32_MAX);
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		kept[i] = ky_names_intern(&names, text, strlen(text));
		assert_int_equal(*ky_names_at(&names, &arena, kept[i]), UINT32_MAX);
		*ky_names_at(&names, &arena, kept[i]) = i;
	}
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		assert_ptr_equal(ky_names_intern(&names, text, strlen(text)), kept[i]);
		assert_int_equal(ky_names_find(&names, &arena, kept[i]), i);
		assert_int_equal(ky_names_find(&names, &names, kept[i]), UINT32_MAX);
	}
	assert_string_equal(ky_names_intern(&names, "name12", 5), "name1");
	ky_names_deinit(&names);
	ky_arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
