/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/keyed-hash.h"

/* From the authors' test vectors: key 00 01 ... 0f, data 00 01 ... */
static void test_vectors(void **state)
{
	const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
	uint8_t data[15];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_true(ky_siphash(key, data, 0) == UINT64_C(0x726fdb47dd0e0e31));
	assert_true(ky_siphash(key, data, 1) == UINT64_C(0x74f839c593dc67fd));
	assert_true(ky_siphash(key, data, 8) == UINT64_C(0x93f5f5799a932462));
	assert_true(ky_siphash(key, data, 15) == UINT64_C(0xa129ca6149be45e5));
}

static void test_same_key(void **state)
{
	assert_int_equal(ky_hash("abc", 3), ky_hash("abc", 3));
	assert_int_not_equal(ky_hash("abc", 3), ky_hash("abd", 3));
}

/* Texts that FNV-1a does not distinguish. */
static void test_collisions(void **state)
{
	assert_int_not_equal(ky_hash("costarring", 10), ky_hash("liquid", 6));
	assert_int_not_equal(ky_hash("declinate", 9), ky_hash("macallums", 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_same_key),
		cmocka_unit_test(test_collisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
