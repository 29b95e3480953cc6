/* SPDX-License-Identifier: MIT */
#include "base/htab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct item {
	struct ky_hnode node;
	uint32_t key;
};

static struct item *find_item(const struct ky_htab *t, uint32_t key, uint32_t hash)
{
	for (struct ky_hnode *n = ky_htab_first(t, hash); n; n = ky_htab_next(n))
		if (ky_container_of(n, struct item, node)->key == key)
			return ky_container_of(n, struct item, node);
	return NULL;
}

/* Hashes collide on purpose. */
static void test_htab(void **state)
{
	static struct item items[1000];
	struct ky_hnode *n, *tmp;
	struct ky_htab t = {0};
	size_t i, seen = 0;

	assert_null(find_item(&t, 1, 1));
	for (i = 0; i < 1000; i++) {
		items[i].key = (uint32_t)i;
		assert_int_equal(ky_htab_add(&t, &items[i].node, (uint32_t)i % 37), 0);
	}
	for (i = 0; i < 1000; i += 2)
		ky_htab_remove(&t, &items[i].node);
	for (i = 0; i < 1000; i++)
		assert_ptr_equal(
			find_item(&t, (uint32_t)i, (uint32_t)i % 37), i % 2 ? &items[i] : NULL);
	ky_htab_foreach(&t, i, n, tmp) seen++;
	assert_int_equal(seen, 500);
	assert_int_equal(t.n, 500);
	ky_htab_deinit(&t);
}

/* The node is not the first member: malloc() notices a wrong address, a sanitizer also a leak. */
struct late {
	uint64_t before[3];
	struct ky_hnode node;
};

static void test_free_all(void **state)
{
	struct ky_htab t = {0};

	ky_htab_free_all(&t, struct late, node);
	for (uint32_t i = 0; i < 100; i++) {
		struct late *l = calloc(1, sizeof(*l));

		assert_non_null(l);
		assert_int_equal(ky_htab_add(&t, &l->node, i % 37), 0);
	}
	ky_htab_free_all(&t, struct late, node);
	assert_int_equal(t.n, 0);
	assert_null(ky_htab_first(&t, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_htab),
		cmocka_unit_test(test_free_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
