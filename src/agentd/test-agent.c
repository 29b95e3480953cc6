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

/* Requests a list of at most max bytes of names, and sends the reply to it. */
static void receive_list(struct agent *a, size_t max, const unsigned char *reply, size_t n)
{
	unsigned char out[AGENT_OUT_MAX];

	agent_ask_list(a, max);
	assert_int_equal(agent_command(a, false, out), 16);
	assert_int_equal(command_of(out), 1);
	for (size_t i = 0; i < n; i += 5)
		assert_int_equal(agent_receive(a, reply + i, KY_MIN(n - i, (size_t)5)), 0);
	assert_int_equal(a->state, AGENT_READY);
}

static void test_list(void **state)
{
	static const unsigned char reply[] = "\0\0\0\1\0\0\0\10\0\0\0\2one\0two";
	static const unsigned char failure[] = {0, 0, 0, 2};
	unsigned char out[AGENT_OUT_MAX];
	struct agent a = {0};

	assert_int_equal(agent_receive(&a, registration, sizeof(registration)), 0);
	assert_int_equal(agent_command(&a, false, out), 16);
	receive_list(&a, 100, reply, sizeof(reply));
	assert_int_equal(a.list, AGENT_LIST_HERE);
	assert_int_equal(a.names.error, 0);
	assert_int_equal(a.names.len, 8);
	assert_memory_equal(a.names.data, "one\0two", 8);
	/* The rest of what it may not send is read, and dropped. */
	agent_end_list(&a);
	receive_list(&a, 5, reply, sizeof(reply));
	assert_int_equal(a.list, AGENT_LIST_HERE);
	assert_int_equal(a.names.error, -EMSGSIZE);
	assert_int_equal(a.names.len, 5);
	assert_memory_equal(a.names.data, "one\0t", 5);
	agent_end_list(&a);
	receive_list(&a, 100, failure, sizeof(failure));
	assert_int_equal(a.list, AGENT_LIST_FAILED);
	agent_end_list(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_unwanted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
