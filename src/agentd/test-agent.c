/* SPDX-License-Identifier: MIT */
#include "agentd/agent.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const unsigned char registration[] = {0, 0, 0, 5, 0, 0, 4, 210, 0, 0, 0, 2, 0, 0, 0, 0};
static const unsigned char success[] = {0, 0, 0, 1};

static unsigned command_of(const unsigned char *out)
{
	return out[11];
}

static void test_life(void **state)
{
	unsigned char out[AGENT_OUT_MAX];
	struct agent a = {0};

	assert_int_equal(agent_command(&a, true, out), 0);
	for (size_t i = 0; i < sizeof(registration); i++)
		assert_int_equal(agent_receive(&a, registration + i, 1), 0);
	assert_int_equal(a.domain, 5);
	assert_int_equal(a.pid, 1234);

	/* It records before it knows that its registration has ended. */
	assert_int_equal(agent_command(&a, true, out), 16 + 268);
	assert_int_equal(command_of(out), 2);
	assert_string_equal((const char *)out + 16 + 8, "*");
	assert_int_equal(agent_command(&a, true, out), 0);
	assert_int_equal(agent_receive(&a, success, sizeof(success)), 0);
	assert_int_equal(agent_command(&a, true, out), 16);
	assert_int_equal(command_of(out), 4);
	assert_int_equal(agent_command(&a, true, out), 0);

	/* Changes while it has not replied are sent after the reply. */
	assert_int_equal(agent_command(&a, false, out), 16 + 256);
	assert_int_equal(command_of(out), 3);
	assert_int_equal(agent_command(&a, true, out), 0);
	assert_int_equal(agent_receive(&a, success, sizeof(success)), 0);
	assert_int_equal(agent_command(&a, true, out), 16 + 268);
}

static void test_unwanted(void **state)
{
	unsigned char out[AGENT_OUT_MAX];
	struct agent a = {0};

	assert_int_equal(agent_receive(&a, registration, sizeof(registration)), 0);
	assert_int_equal(agent_command(&a, false, out), 16);
	assert_int_equal(command_of(out), 4);
	assert_int_equal(agent_command(&a, false, out), 0);
}

static void test_refused(void **state)
{
	unsigned char other[sizeof(registration)], out[AGENT_OUT_MAX];
	struct agent a = {0}, b = {0};

	memcpy(other, registration, sizeof(other));
	other[11] = 3;
	assert_int_equal(agent_receive(&a, other, sizeof(other)), -ENOTSUP);
	/* A reply to no command. */
	assert_int_equal(agent_receive(&b, registration, sizeof(registration)), 0);
	assert_int_equal(agent_command(&b, false, out), 16);
	assert_int_equal(agent_receive(&b, success, sizeof(success)), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_unwanted),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
