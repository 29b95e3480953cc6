/* SPDX-License-Identifier: MIT */
#include "cli/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"

static struct xml *parse_xml_text(const char *text)
{
	return xml_parse(text, strlen(text));
}

static void test_tree(void **state)
{
	struct xml *x = parse_xml_text(
		"<?xml version=\"1.0\"?>\n<!-- a > b -->\n<s a='>' >\n <n> x &lt;&amp;&#65;&#xE9; "
		"</n><n/><l><n>2</n></l></s>\n");
	const struct xml *n;

	assert_non_null(x);
	assert_string_equal(x->name, "s");
	n = xml_child(x, "n");
	assert_string_equal(n->text, "x <&A\xc3\xa9");
	n = xml_next(n);
	assert_string_equal(n->text, "");
	assert_null(xml_next(n));
	assert_string_equal(xml_text(xml_child(x, "l"), "n"), "2");
	assert_string_equal(xml_text(xml_child(x, "missing"), "n"), "");
	xml_free(x);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {"", "text", "<a>", "<a></b>", "<a></a><b/>",
		"<a>&nbsp;</a>", "<a>&#0;</a>", "<a>&#xd800;</a>", "<a>&#9999999999;</a>",
		"<a><![CDATA[x]]></a>", "<!DOCTYPE a><a/>", "<a", "<a b='", "<", "<a>&", "<!--",
		"<a></a", "<a><b></a></b>"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_null(parse_xml_text(texts[i]));
	assert_null(xml_parse("<a>\0</a>", 8));
}

/* Returns whether elements in each other are parsed, so many of them. */
static bool parses_depth(unsigned depth)
{
	struct ky_buf b = {0};
	struct xml *x;

	for (unsigned i = 0; i < depth; i++)
		ky_buf_puts(&b, "<a>");
	for (unsigned i = 0; i < depth; i++)
		ky_buf_puts(&b, "</a>");
	x = xml_parse(b.data, b.len);
	ky_buf_deinit(&b);
	xml_free(x);
	return x != NULL;
}

/* A file cannot make the parser use up the stack. */
static void test_depth(void **state)
{
	assert_true(parses_depth(XML_DEPTH_MAX));
	assert_false(parses_depth(XML_DEPTH_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
