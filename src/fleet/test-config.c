/* SPDX-License-Identifier: MIT */
#include "fleet/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define IDENTITY "cert = a.crt\nkey = a.key\nca = /ca.crt\n"

static char dir[] = "/tmp/kymo-fleet-XXXXXX";

/* Writes the file and reads it. */
static int load_text(struct fleet_config *c, const char *text, char *why, size_t size)
{
	char path[64];
	FILE *f;
	int r;

	snprintf(path, sizeof(path), "%s/fleet.conf", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	r = config_load(c, path, why, size);
	unlink(path);
	return r;
}

static void test_good(void **state)
{
	char why[256], path[64];
	struct fleet_config c;

	assert_int_equal(
		load_text(&c,
			"# a host\n\nservers = tls://a:1,tls://b:2\n  name=web-1\t\n" IDENTITY
			"rate = 20M\nshards = 4\nhold-size = 2G\nhold-time = 10m\nbeat = 1s\nhold = there\n",
			why, sizeof(why)),
		0);
	assert_string_equal(c.servers, "tls://a:1,tls://b:2");
	assert_string_equal(c.name, "web-1");
	snprintf(path, sizeof(path), "%s/a.crt", dir);
	assert_string_equal(c.cert, path);
	assert_string_equal(c.ca, "/ca.crt");
	snprintf(path, sizeof(path), "%s/there", dir);
	assert_string_equal(c.hold, path);
	assert_int_equal(c.hold_size, (uint64_t)2 << 30);
	assert_int_equal(c.hold_us, 600000000);
	assert_int_equal(c.beat_us, 1000000);
	assert_int_equal(c.rate, 20 << 20);
	assert_int_equal(c.shards, 4);
}

static void test_bad(void **state)
{
	static const char *const lines[] = {"beat = 1us\n", "beat\n", "bet = 1s\n", "name = a.b\n",
		"name = -a\n", "name =\n", "rate = 0\n", "shards = 0\n", "shards = 65\n",
		"rate = 100\n", "hold-size = 0\n", "hold-time = never\n", "= 1\n"};
	char why[256], text[256];
	struct fleet_config c;

	for (size_t i = 0; i < KY_ARRAY_SIZE(lines); i++) {
		snprintf(text, sizeof(text), "servers = tls://a:1\nname = a\n" IDENTITY "%s",
			lines[i]);
		assert_int_equal(load_text(&c, text, why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "fleet.conf:6: "));
	}
	assert_int_equal(load_text(&c, "name = a\n" IDENTITY, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "'servers' is missing"));
	assert_int_equal(config_load(&c, "/proc/nonexistent/x", why, sizeof(why)), -ENOENT);
	assert_string_equal(why,
		"cannot read /proc/nonexistent/x: No such file or directory: 'kymo fleet setup' makes it, for each host");
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
