/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reader/put.h"

static void check_u64(uint64_t v)
{
	char got[KY_PUT_NUMBER + 1], wanted[32];

	memset(got, '#', sizeof(got));
	*ky_put_u64(got, v) = '\0';
	snprintf(wanted, sizeof(wanted), "%" PRIu64, v);
	assert_string_equal(got, wanted);
	*ky_put_hex(got, v) = '\0';
	snprintf(wanted, sizeof(wanted), "%" PRIX64, v);
	assert_string_equal(got, wanted);
	*ky_put_i64(got, (int64_t)v) = '\0';
	snprintf(wanted, sizeof(wanted), "%" PRId64, (int64_t)v);
	assert_string_equal(got, wanted);
}

/* All pairs of halves would take long; each half is worked out on its own. */
static void test_digits(void **state)
{
	for (uint32_t half = 0; half < 10000; half++) {
		check_u64(half);
		check_u64(half * 10000 + half);
		check_u64(half * 10000 + 9999 - half);
		check_u64((uint64_t)half * 10000 * 10000 + half);
	}
}

static void test_powers(void **state)
{
	uint64_t v = 1;

	for (int i = 0; i < 20; i++, v *= 10) {
		check_u64(v - 1);
		check_u64(v);
		check_u64(v + 1);
	}
	for (int i = 0; i < 64; i++)
		check_u64(0xfedcba9876543210 >> i);
	check_u64(INT64_MAX);
	check_u64((uint64_t)INT64_MIN);
	check_u64(UINT64_MAX);
}

static void test_fraction(void **state)
{
	char got[16], wanted[32];

	for (uint32_t ns = 0; ns < 1000000000; ns += ns < 1000 ? 1 : 777777) {
		*ky_put_fraction(got, ns) = '\0';
		snprintf(wanted, sizeof(wanted), ".%09u", ns);
		assert_string_equal(got, wanted);
	}
}

/* Ten times what there is room for at once. */
static char *put_much(struct ky_put *p, char *to)
{
	char text[10 * KY_PUT_MAX];

	memset(text, 'x', sizeof(text));
	return ky_put_bytes(p, to, text, sizeof(text));
}

static void test_room(void **state)
{
	struct ky_buf b = {0};
	struct ky_put p;
	char *to = ky_put_begin(&p, &b);

	for (int i = 0; i < 1000; i++)
		to = ky_put_u64(ky_put_room(&p, to, KY_PUT_NUMBER), 12345678901u);
	to = put_much(&p, to);
	ky_put_end(&p, to);
	assert_int_equal(b.error, 0);
	assert_int_equal(b.len, 11 * 1000 + 10 * KY_PUT_MAX);
	for (size_t i = 0; i < 11 * 1000; i++)
		assert_int_equal(b.data[i], "12345678901"[i % 11]);
	for (size_t i = 11 * 1000; i < b.len; i++)
		assert_int_equal(b.data[i], 'x');
	ky_buf_deinit(&b);
}

/* The buffer's limit, from the beginning or later: nothing is written anywhere else. */
static void test_failing(void **state)
{
	for (size_t max = 1; max < 4 * KY_PUT_MAX; max += KY_PUT_MAX - 1) {
		struct ky_buf b = {.max = max};
		struct ky_put p;
		char *to = ky_put_begin(&p, &b);

		for (int i = 0; i < 1000; i++)
			to = ky_put_u64(ky_put_room(&p, to, KY_PUT_NUMBER), UINT64_MAX);
		ky_put_end(&p, put_much(&p, to));
		assert_int_equal(b.error, -EMSGSIZE);
		assert_true(b.len <= b.cap);
		ky_buf_deinit(&b);
	}
}

static void check_g(double v)
{
	char ours[64] = "", theirs[64];

	*ky_put_g(ours, v) = '\0';
	snprintf(theirs, sizeof(theirs), "%g", v);
	assert_string_equal(ours, theirs);
}

/* As printf: numbers of all sizes, and those next to the middle between two texts. */
static void test_g(void **state)
{
	static const double odd[] = {0, 1, 0.5, 0.1, 1e-3, 1e-4, 999999, 999998.5, 999999.5, 1e6,
		100000.5, 123456.5, 99999.95, 9.999995, 0.00099999951, 1e300, 1e-300, 0x1p-1074};
	uint64_t bits = 0x9e3779b97f4a7c15;

	(void)state;
	for (size_t i = 0; i < KY_ARRAY_SIZE(odd); i++)
		for (int sign = -1; sign <= 1; sign += 2) {
			check_g(sign * odd[i]);
			check_g(sign * __builtin_nextafter(odd[i], 1e301));
			check_g(sign * __builtin_nextafter(odd[i], -1));
		}
	check_g(__builtin_inf());
	check_g(-__builtin_nan(""));
	for (int i = 0; i < 400000; i++) {
		double v;

		bits = bits * 6364136223846793005 + 1442695040888963407;
		memcpy(&v, &bits, sizeof(v));
		check_g(v);
		check_g((double)(int64_t)bits / 1e15);
		check_g((double)(bits >> 40) / 1e7);
		check_g((float)(bits >> 44) / 64.0f);
		check_g((double)(bits >> 45) / 2);
		check_g((double)(bits >> 44) / 8);
		check_g((double)(bits >> 34) / (1u << (bits & 31)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digits),
		cmocka_unit_test(test_powers),
		cmocka_unit_test(test_fraction),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_failing),
		cmocka_unit_test(test_g),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
