/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/open-async.h"

struct span {
	struct ky_open_async open;
	int value;
};

static struct span *begin(struct ky_htab *open, uint32_t name, uint64_t id)
{
	struct span *s = ky_open_async_begin(open, sizeof(*s), name, id);

	assert_non_null(s);
	assert_int_equal(s->value, 0);
	return s;
}

static void test_newest_ends_first(void **state)
{
	struct ky_htab open = {0};
	struct span *first = begin(&open, 1, 7), *second = begin(&open, 1, 7);

	(void)state;
	for (uint64_t id = 100; id < 200; id++)
		begin(&open, 1, id); /* the table grows */
	begin(&open, 2, 7);
	assert_ptr_equal(ky_open_async_end(&open, 1, 7), second);
	assert_ptr_equal(ky_open_async_end(&open, 1, 7), first);
	assert_null(ky_open_async_end(&open, 1, 7));
	free(first);
	free(second);
	begin(&open, 2, 7); /* two of one name are left */
	ky_open_async_free_all(&open);
	assert_null(ky_open_async_end(&open, 2, 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_ends_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
