/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/column.h"
#include "report/flows.h"

static void add_step(struct ky_flows *f, uint32_t stem, uint64_t id, int64_t ns)
{
	const struct ky_flow_step step = {.name = 9, .stem = stem, .id = id, .track = 3, .ns = ns};

	assert_int_equal(ky_flows_add(f, &step), 0);
}

static void test_columns(void **state)
{
	static const char bytes[] = {4, 3, 3, 3, /* lengths */
		(char)0xac, 2, 1, 0,		 /* 300 ns, then 1 and 0 later */
		9, 9, 9, 0, 1, 0,		 /* names, numbers */
		3, 3, 3};
	struct ky_flows f = {0};
	struct ky_buf part = {0};

	(void)state;
	add_step(&f, 1, 7, 300);
	add_step(&f, 2, 7, 301); /* another flow */
	add_step(&f, 1, 7, 301);
	ky_flows_put(&f, &part);
	assert_int_equal(part.len, sizeof(bytes));
	assert_memory_equal(part.data, bytes, sizeof(bytes));
	ky_buf_deinit(&part);
	ky_flows_deinit(&f);
}

/* A column that lacks a step would shift all that follow. */
static void test_no_memory(void **state)
{
	struct ky_flows f = {0};
	struct ky_buf part = {0};

	(void)state;
	add_step(&f, 1, 7, 300);
	f.names.error = -ENOMEM;
	add_step(&f, 1, 7, 301);
	ky_flows_put(&f, &part);
	assert_int_equal(part.error, -ENOMEM);
	ky_buf_deinit(&part);
	ky_flows_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
