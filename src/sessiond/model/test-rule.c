/* SPDX-License-Identifier: MIT */
#include "sessiond/model/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_match(void **state)
{
	static const char *const but[] = {"shop:debug_*", "*:noise"};
	struct rule *r = rule_new("shop:*", but, 2, KY_LEVEL_ALL, 0);

	assert_true(rule_matches(r, "shop:order", 14));
	assert_false(rule_matches(r, "shop:debug_x", 14));
	assert_false(rule_matches(r, "shop:noise", 0));
	assert_false(rule_matches(r, "shop", 0));
	r->level_type = KY_LEVEL_AT_LEAST;
	r->level = 4;
	assert_true(rule_matches(r, "shop:order", 4));
	assert_true(rule_matches(r, "shop:order", 0));
	assert_false(rule_matches(r, "shop:order", 5));
	r->level_type = KY_LEVEL_ONLY;
	assert_true(rule_matches(r, "shop:order", 4));
	assert_false(rule_matches(r, "shop:order", 3));
	rule_free(r);
}

static bool pattern_matches(const char *pattern, const char *name)
{
	struct rule *r = rule_new(pattern, NULL, 0, KY_LEVEL_ALL, 0);
	bool match = rule_matches(r, name, 13);

	rule_free(r);
	return match;
}

/* Patterns match Kymo's own events only if they name them. */
static void test_own(void **state)
{
	static const char *const own[] = {
		"kymo_statedump:start", "kymo_lib:load", "kymo_vm:created", "kymo_mount:added"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(own); i++) {
		assert_false(pattern_matches("*", own[i]));
		assert_false(pattern_matches("*:*", own[i]));
		assert_false(pattern_matches("k*", own[i]));
		assert_true(pattern_matches("kymo_*", own[i]));
		assert_true(pattern_matches(own[i], own[i]));
	}
	assert_false(pattern_matches("kymo_vm:*", "kymo_lib:load"));
	assert_true(pattern_matches("*", "kymo_tracef:event"));
	assert_true(pattern_matches("*", "kymo_library:load"));
}

static void test_equal(void **state)
{
	static const char *const but[] = {"a:x", "a:y"};
	struct rule *a = rule_new("a:*", but, 2, KY_LEVEL_ONLY, 3);
	struct rule *others[] = {
		rule_new("a:*", but, 2, KY_LEVEL_ONLY, 3),
		rule_new("a:b", but, 2, KY_LEVEL_ONLY, 3),
		rule_new("a:*", but, 1, KY_LEVEL_ONLY, 3),
		rule_new("a:*", but, 2, KY_LEVEL_AT_LEAST, 3),
		rule_new("a:*", but, 2, KY_LEVEL_ONLY, 4),
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(others); i++) {
		assert_int_equal(rule_equal(a, others[i]), i == 0);
		rule_free(others[i]);
	}
	rule_free(a);
}

static void test_encode(void **state)
{
	static const char *const but[] = {"b"};
	struct rule *r = rule_new("a", but, 1, KY_LEVEL_AT_LEAST, 6);
	uint8_t buf[64];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_reader in = {.buf = buf};

	rule_encode(&w, r);
	in.len = w.len;
	assert_string_equal(ky_read_str(&in), "a");
	assert_int_equal(ky_read_u32(&in), KY_LEVEL_AT_LEAST);
	assert_int_equal(ky_read_i32(&in), 6);
	assert_int_equal(ky_read_u32(&in), 1);
	assert_string_equal(ky_read_str(&in), "b");
	assert_int_equal(in.error, 0);
	assert_int_equal(in.pos, in.len);
	rule_free(r);
}

static void test_near(void **state)
{
	assert_true(name_is_near("shop:ordre", "shop:order"));
	assert_true(name_is_near("Shop:Order", "shop:order"));
	assert_true(name_is_near("order", "shop:order"));
	assert_true(name_is_near("sohp:*", "shop:order"));
	assert_false(name_is_near("shop:cart", "parcel:sent"));
	assert_false(name_is_near("parcel:*", "shop:order"));
	assert_true(name_is_near("shed*", "sched_switch"));
	assert_true(name_is_near("switch", "sched_switch"));
	assert_false(name_is_near("up:*", "kymo_cgroup:container"));
	assert_true(name_is_near("scched*", "sched_switch"));
	assert_false(name_is_near("shed*", "check_mmio_spte"));
	assert_false(name_is_near("shed*", "thermal_apic_exit"));
	assert_false(name_is_near("*", "thermal_apic_exit"));
	assert_false(name_is_near("", ""));
}

/* The work for a hostile user's pattern and names is limited. */
static void test_near_is_limited(void **state)
{
	static const char far[] = "parcel:sent", near[] = "shop:order";
	struct rule *r = rule_new("shop:ordre", NULL, 0, KY_LEVEL_ALL, 0);
	char pattern[RULE_PATTERN_MAX + 1], name[256];

	memset(name, 'a', sizeof(name) - 1);
	name[255] = '\0';
	snprintf(pattern, sizeof(pattern), "b%.63s", name);
	assert_true(name_is_near(pattern, &name[255 - 64]));
	snprintf(pattern, sizeof(pattern), "b%.64s", name);
	assert_false(name_is_near(pattern, &name[255 - 65]));

	for (unsigned i = 1; i < RULE_COMPARED_MAX; i++)
		rule_note_similar(r, far);
	rule_note_similar(r, near);
	assert_int_equal(r->n_similar, 1);
	rule_note_similar(r, "shop:orders");
	assert_int_equal(r->n_similar, 1);
	rule_free(r);
}

static void test_meant(void **state)
{
	assert_true(name_is_meant("channel", "channel0"));
	assert_true(name_is_meant("deom", "demo"));
	assert_false(name_is_meant("a", "b"));
	assert_false(name_is_meant("", "b"));
	assert_false(name_is_meant("demo", "other"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_near_is_limited),
		cmocka_unit_test(test_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
