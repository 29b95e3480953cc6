/* SPDX-License-Identifier: MIT */
/*
 * As much of cmocka as src/ring/test-writer.c uses, for targets that Debian has no cmocka for: the
 * first failure ends the program. Only the tests of foreign processors include this.
 */
#ifndef FOREIGN_CMOCKA_H
#define FOREIGN_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
};

#define cmocka_unit_test(f)                                                                        \
	{                                                                                          \
#f, f                                                                              \
	}
#define assert_true(c)                                                                             \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #c);                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define assert_int_equal(a, b)	     assert_true((a) == (b))
#define assert_memory_equal(a, b, n) assert_true(!memcmp(a, b, n))
#define skip()                                                                                     \
	do {                                                                                       \
		printf("skipped\n");                                                               \
		return;                                                                            \
	} while (0)
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
	run_tests(tests, sizeof(tests) / sizeof(tests[0]))

static inline int run_tests(const struct CMUnitTest *tests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		printf("%s\n", tests[i].name);
		fflush(stdout);
		tests[i].run(NULL);
	}
	return 0;
}

#endif
