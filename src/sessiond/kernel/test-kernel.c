/* SPDX-License-Identifier: MIT */
/* Kernel channels, when the kernel's files cannot be written or memory runs out. */
#include "sessiond/kernel/kernel.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sessiond/kernel/events.h"

static struct env env;
static struct kernel kernel;
static struct session session;
static struct channel channel;
static struct kernel_set set;
static struct rule rule;
static bool no_memory; /* strdup() fails */

char *__wrap_strdup(const char *s);
char *__real_strdup(const char *s);

char *__wrap_strdup(const char *s)
{
	return no_memory ? NULL : __real_strdup(s);
}

static int setup(void **state)
{
	env_init(&env);
	assert_int_equal(ky_loop_init(&env.loop), 0);
	kernel_init(&kernel, &env);
	session = (struct session){.env = &env, .name = (char *)"s", .state = SESSION_STARTED};
	ky_list_init(&session.channels);
	ky_list_init(&session.notices);
	channel = (struct channel){
		.session = &session, .name = (char *)"c", .kernel = &set, .enabled = true};
	ky_list_append(&session.channels, &channel.node);
	ky_list_init(&channel.rules);
	rule = (struct rule){.pattern = (char *)"p", .kind = RULE_PROBE, .enabled = true};
	ky_list_append(&channel.rules, &rule.node);
	set = (struct kernel_set){.channel = &channel};
	ky_list_init(&set.events);
	instance_init(&set.main);
	instance_init(&set.tasks);
	return 0;
}

static int teardown(void **state)
{
	struct notice *n, *tmp;

	ky_list_foreach_safe (n, tmp, &session.notices, node) {
		free(n->text);
		free(n);
	}
	tracker_deinit(&session.trackers[TRACK_PID]);
	kernel_deinit(&kernel);
	ky_loop_deinit(&env.loop);
	return 0;
}

static bool is_noted(const char *text)
{
	const struct notice *n;

	ky_list_foreach (n, &session.notices, node)
		if (strstr(n->text, text))
			return true;
	return false;
}

/* The instances have no files. */
static void test_kernel_does_not_stop(void **state)
{
	set.recording = true;
	kernel_stop(&session);
	assert_true(is_noted("channel 'c': the kernel does not stop recording: "));
	assert_false(set.recording);
}

static void test_kernel_does_not_start(void **state)
{
	set.recording = true;
	assert_int_equal(tracker_add(&session.trackers[TRACK_PID], 1), 0);
	kernel_apply(&session);
	assert_true(is_noted("channel 'c': the kernel does not start recording: "));
	assert_false(set.recording);
}

static void test_no_memory_for_probe(void **state)
{
	char top[] = "/tmp/kymo-test-kernel-XXXXXX", why[KERNEL_WHY_MAX] = "old";
	int fd;

	assert_non_null(mkdtemp(top));
	kernel.fs.root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(kernel.fs.root, "available_events", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	rule.probe = (char *)"p:p /bin/x:0x1\n";
	no_memory = true;
	assert_int_equal(kernel_events_update(&channel, why), -ENOMEM);
	no_memory = false;
	assert_string_equal(why, "cannot define a probe: Cannot allocate memory");
	unlinkat(kernel.fs.root, "available_events", 0);
	rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel_does_not_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_does_not_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory_for_probe, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
