/* SPDX-License-Identifier: MIT */
#include "sessiond/model/contents.h"
#include "sessiond/model/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define NOTHING UINT64_C(0x5555555555555555)

/* Returns the value that the option makes of the text, or NOTHING if it refuses the text. */
static uint64_t taken(const char *param, const char *text, int *ret)
{
	const struct option *o = option_find(param);
	struct option_values values = {0};

	assert_non_null(o);
	*ret = option_take(&values, o, text);
	return *ret < 0 ? NOTHING : values.value[o - channel_options];
}

static void test_values(void **state)
{
	static const struct {
		const char *param, *text;
		uint64_t value;
		int ret;
	} cases[] = {
		{"switch_timer", "0", 0, 0},
		{"switch_timer", "250", 250, 0},
		{"switch_timer", "250us", 250, 0},
		{"switch_timer", "20ms", 20000, 0},
		{"switch-timer", "2S", 2000000, 0},
		{"switch_timer", "3600s", 3600000000, 0},
		{"switch_timer", "3601s", NOTHING, -EINVAL},
		{"switch_timer", "99", NOTHING, -EINVAL},
		{"switch_timer", "inf", NOTHING, -EINVAL},
		{"switch_timer", "18446744073709551615", NOTHING, -EINVAL},
		{"switch_timer", "18446744073709551616s", NOTHING, -EINVAL},
		{"switch_timer", "99999999999999999s", NOTHING, -EINVAL},
		{"switch_timer", "-1", NOTHING, -EINVAL},
		{"switch_timer", " 1", NOTHING, -EINVAL},
		{"switch_timer", "", NOTHING, -EINVAL},
		{"switch_timer", "1K", NOTHING, -EINVAL},
		{"switch_timer", "500 ms", NOTHING, -EINVAL},
		{"blocking_timeout", "inf", UINT64_MAX, 0},
		{"blocking_timeout", "1", 1, 0},
		{"subbuf_size", "64k", 65536, 0},
		{"subbuf_size", "5000", 8192, 1},
		{"subbuf_size", "1", 4096, 1},
		{"subbuf_size", "0", NOTHING, -EINVAL},
		{"subbuf_size", "99G", KY_BLOCK_MAX, 1},
		{"num_subbuf", "3", 4, 1},
		{"num_subbuf", "4K", NOTHING, -EINVAL},
		{"mode", "overwrite", 1, 0},
		{"mode", "over", NOTHING, -EINVAL},
	};
	int ret;

	for (size_t i = 0; i < KY_ARRAY_SIZE(cases); i++) {
		assert_int_equal(taken(cases[i].param, cases[i].text, &ret), cases[i].value);
		assert_int_equal(ret, cases[i].ret);
	}
}

static void expect_explanation(const char *param, const char *wanted)
{
	struct ky_buf why = {0};

	assert_null(option_find(param));
	option_explain_unknown(&why, param);
	assert_non_null(strstr(why.data, wanted));
	ky_buf_deinit(&why);
}

static void test_unknown(void **state)
{
	expect_explanation("swich_timer", "did you mean 'switch-timer'?");
	expect_explanation("output", "cannot be changed");
	expect_explanation("colour", "'kymo set' shows what there is");
}

static void give(struct option_values *values, const char *param, uint64_t value)
{
	ptrdiff_t row = option_find(param) - channel_options;

	values->given |= UINT64_C(1) << row;
	values->value[row] = value;
}

/* The check refuses a set of options as a whole if they contradict each other, or come too late. */
static void test_check(void **state)
{
	struct env env = {0};
	struct session s = {.env = &env, .name = (char *)"s"};
	struct ring_set set = {.described = true};
	struct option_values values = {0};
	struct ky_buf why = {0};
	struct channel *c;

	ky_list_init(&s.channels);
	c = channel_new(&s, "c");
	give(&values, "mode", true);
	give(&values, "switch_timer", 5000);
	assert_int_equal(options_check(c, &values, &why), 0);
	assert_false(c->overwrite);
	ky_list_append(&c->sets, &set.node);
	assert_int_equal(options_check(c, &values, &why), -EINVAL);
	assert_non_null(strstr(why.data, "has buffers"));
	ky_list_remove(&set.node);
	options_apply(c, &values);
	assert_true(c->overwrite);
	assert_int_equal(c->switch_timer_us, 5000);
	assert_int_equal(c->num_subbuf, DEFAULT_NUM_SUBBUF);
	values.given = 0;
	give(&values, "blocking_timeout", 1);
	assert_int_equal(options_check(c, &values, &why), -EINVAL);
	give(&values, "mode", false);
	assert_int_equal(options_check(c, &values, &why), 0);
	give(&values, "subbuf_size", KY_BLOCK_MAX);
	give(&values, "num_subbuf", KY_RING_MAX_BLOCKS);
	assert_int_equal(options_check(c, &values, &why), -EINVAL);
	s.snapshot = true;
	values.given = 0;
	give(&values, "mode", false);
	assert_int_equal(options_check(c, &values, &why), -EINVAL);
	ky_buf_deinit(&why);
	channel_free(c);
	assert_int_equal(s.n_channels, 0);
}

/* Bounds are in units in which they are short, and could be given. */
static void test_description(void **state)
{
	static const char *const wanted[][2] = {
		{"subbuf_size", "a power of two from 4K to 1G (bytes, or with K, M or G)"},
		{"switch_timer",
			"0 (only when recording stops), or from 100us to 1h (microseconds, or with us, ms, s, m or h)"},
		{"pool_size", "from 1 to 32768"},
		{"mode", "'discard' or 'overwrite'"},
		{"buffers", "'cpu', 'thread', 'process' or 'auto'"},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(wanted); i++) {
		struct ky_buf text = {0};

		option_describe(&text, option_find(wanted[i][0]));
		assert_string_equal(text.data, wanted[i][1]);
		ky_buf_deinit(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_description),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
