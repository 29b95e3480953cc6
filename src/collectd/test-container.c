/* SPDX-License-Identifier: MIT */
#include "collectd/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void test_names(void **state)
{
	static const struct {
		const char *path, *id, *runtime, *own;
	} cases[] = {
		{"/docker/" ID, ID, "docker", "/docker/" ID},
		{"/docker/" ID "/init.scope", ID, "docker", "/docker/" ID},
		{"/system.slice/docker-" ID ".scope", ID, "docker",
			"/system.slice/docker-" ID ".scope"},
		{"/docker/" ID "/docker/" OTHER, OTHER, "docker", "/docker/" ID "/docker/" OTHER},
		{"/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" ID ".scope", ID,
			"cri-containerd",
			"/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" ID ".scope"},
		{"/kubepods/burstable/pod12-34/" ID, ID, "", "/kubepods/burstable/pod12-34/" ID},
		{"/machine.slice/libpod-" ID ".scope/container/a", ID, "libpod",
			"/machine.slice/libpod-" ID ".scope"},
		{"/lxc.payload.web/system.slice", "web", "lxc", "/lxc.payload.web"},
		{"/machine.slice/systemd-nspawn@deb.service/payload", "deb", "nspawn",
			"/machine.slice/systemd-nspawn@deb.service"},
	};
	struct container c;

	for (size_t i = 0; i < KY_ARRAY_SIZE(cases); i++) {
		assert_true(container_of_path(&c, cases[i].path));
		assert_string_equal(c.id, cases[i].id);
		assert_string_equal(c.runtime, cases[i].runtime);
		assert_int_equal(c.path_len, strlen(cases[i].own));
	}
}

static void test_none(void **state)
{
	static const char *const paths[] = {"", "/", "/user.slice/user-1000.slice/session-1.scope",
		"/docker", "/docker/0123", "/a" ID, "/docker/" ID "0",
		"/machine.slice/libpod-conmon-" ID ".scope", "/lxc.payload.",
		"/systemd-nspawn@.service"};
	struct container c;

	for (size_t i = 0; i < KY_ARRAY_SIZE(paths); i++)
		assert_false(container_of_path(&c, paths[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
