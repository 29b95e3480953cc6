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

static void init_env(struct env *env, struct peers *peers)
{
	*env = (struct env){.peers = peers};
	ky_list_init(&env->observers);
	ky_list_init(&peers->messages);
}

static struct message *first_message(const struct peers *peers)
{
	return ky_list_entry(peers->messages.next, struct message, node);
}

/* A message without one of its texts is not added, and takes no number. */
static void test_no_memory(void **state)
{
	static struct peers peers; /* keeps the message */
	struct env env;
	struct session s = {.env = &env, .name = (char *)"s"};
	const struct message_source from = {.session = &s, .trigger = "t", .when = "died"};
	struct message *m;

	init_env(&env, &peers);
	for (unsigned n = 1; n <= 5; n++) {
		fails_at = n;
		message_add(&from, MESSAGE_FIRED, "", "text");
		assert_int_equal(fails_at, 0);
		assert_true(ky_list_empty(&peers.messages));
	}
	message_add(&from, MESSAGE_FIRED, "", "text %d", 1);
	m = first_message(&peers);
	assert_int_equal(m->number, 1);
	assert_string_equal(m->text, "text 1");
}

/* A user's messages beyond the limit replace the oldest of this user, and nobody else's. */
static void test_limit(void **state)
{
	static struct peers peers; /* keeps the messages */
	struct env env;
	struct session mine = {.env = &env, .name = (char *)"s", .uid = 1}, other = mine;
	struct message_source from = {.session = &mine, .trigger = "t", .when = "died"};
	const struct message *m;
	unsigned n = 0;

	init_env(&env, &peers);
	message_add(&from, MESSAGE_FIRED, "", "the oldest");
	other.uid = 2;
	from.session = &other;
	message_add(&from, MESSAGE_FIRED, "", "of another user");
	from.session = &mine;
	for (unsigned i = 1; i < USER_MESSAGES_MAX; i++)
		message_add(&from, MESSAGE_FIRED, "", "text");
	assert_string_equal(first_message(&peers)->text, "the oldest");
	message_add(&from, MESSAGE_FIRED, "", "text");
	assert_string_equal(first_message(&peers)->text, "of another user");
	ky_list_foreach (m, &peers.messages, node)
		n++;
	assert_int_equal(n, USER_MESSAGES_MAX + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
