/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sessiond/model/session.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/trigger-messages.h"

static unsigned fails_at; /* the call of strdup() that fails, from 1; 0: none */

char *__wrap_strdup(const char *s);
char *__real_strdup(const char *s);

char *__wrap_strdup(const char *s)
{
	return fails_at && !--fails_at ? NULL : __real_strdup(s);
}

/* A message without one of its texts is not added, and takes no number. */
static void test_no_memory(void **state)
{
	static struct peers peers; /* keeps the message */
	struct env env = {0};
	struct session s = {.env = &env, .name = (char *)"s"};
	const struct message_source from = {.session = &s, .trigger = "t", .when = "died"};
	struct message *m;

	ky_list_init(&env.observers);
	ky_list_init(&peers.messages);
	env.peers = &peers;
	for (unsigned n = 1; n <= 5; n++) {
		fails_at = n;
		message_add(&from, MESSAGE_FIRED, "", "text");
		assert_int_equal(fails_at, 0);
		assert_true(ky_list_empty(&peers.messages));
	}
	message_add(&from, MESSAGE_FIRED, "", "text %d", 1);
	m = ky_list_entry(peers.messages.next, struct message, node);
	assert_int_equal(m->number, 1);
	assert_string_equal(m->text, "text 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
