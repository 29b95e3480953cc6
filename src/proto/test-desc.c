/* SPDX-License-Identifier: MIT */
/* Tests which descriptions the check accepts and refuses: fields in fields. */
#include "proto/desc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define UINT   KYMO_FIELD_UINT
#define STRUCT KYMO_FIELD_STRUCT

static uint8_t bytes[1 << 16];

static struct ky_bytes encode_with_fields(const struct kymo_field *fields)
{
	const struct kymo_event event = {
		.size = sizeof(event), .provider = "p", .name = "e", .fields = fields};
	struct ky_writer w = {.buf = bytes, .cap = sizeof(bytes)};

	ky_desc_encode(&w, &event);
	assert_int_equal(w.error, 0);
	return (struct ky_bytes){bytes, (uint32_t)w.len};
}

static void refused(const struct kymo_field *fields, const char *wanted)
{
	const char *why = "nothing";

	assert_int_equal(ky_desc_check(encode_with_fields(fields), &why), -EBADMSG);
	assert_string_equal(why, wanted);
}

static const struct kymo_field point[] = {
	{UINT, 0, 4, 0, 0, "x", NULL}, {UINT, 0, 4, 0, 0, "y", NULL}, {0}};
static const struct kymo_field options[] = {
	{STRUCT, 0, 0, 0, 0, "point", point}, {KYMO_FIELD_STRING, 0, 1, 0, 0, "text", NULL}, {0}};
static const struct kymo_field event[] = {{KYMO_FIELD_MEDIA, 0, 1, 0, 0, "m", "image/png"},
	{KYMO_FIELD_BLOB, 0, 1, 0, 0, "b", NULL}, {STRUCT, 0, 0, 0, 0, "to", point},
	{KYMO_FIELD_VARIANT, 0, 0, 0, 0, "v", options},
	{KYMO_FIELD_SEQUENCE, STRUCT, 0, 0, 0, "path", options},
	{KYMO_FIELD_ARRAY, STRUCT, 0, 0, 3, "corners", point}, {0}};

static void test_passes(void **state)
{
	struct ky_bytes desc = encode_with_fields(event);
	struct kymo_enum_label label;
	struct ky_desc d, inner;
	struct ky_desc_field f;

	(void)state;
	assert_int_equal(ky_desc_check(desc, NULL), 0);
	ky_desc_open(&d, desc);
	assert_true(ky_desc_next_field(&d, &f));
	assert_int_equal(f.kind, KYMO_FIELD_ENUM);
	assert_true(ky_field_next_label(&f, &label));
	assert_string_equal(label.label, "image/png");
	while (strcmp(f.name, "path"))
		assert_true(ky_desc_next_field(&d, &f));
	assert_true(ky_field_is_array(&f));
	assert_int_equal(ky_field_basic_kind(&f), STRUCT);
	inner = ky_field_fields(&f);
	assert_true(ky_desc_next_field(&inner, &f));
	assert_string_equal(f.name, "point");
	assert_int_equal(f.n_fields, 2);
	assert_true(ky_desc_next_field(&inner, &f));
	assert_false(ky_desc_next_field(&inner, &f));
}

/* The end is missing, or any length on the way says more than there is. */
static void test_cut_short(void **state)
{
	struct ky_bytes desc = encode_with_fields(event);

	(void)state;
	for (uint32_t len = 0; len < desc.len; len++)
		assert_int_equal(ky_desc_check((struct ky_bytes){desc.data, len}, NULL), -EBADMSG);
	for (uint32_t i = 0; i < desc.len; i++) {
		uint8_t byte = bytes[i];

		for (unsigned v = 0; v < 256; v++) {
			bytes[i] = (uint8_t)v;
			ky_desc_check(desc, NULL); /* whatever it says, it reads nothing else */
		}
		bytes[i] = byte;
	}
}

/* As programs written for LTTng-UST have them. */
static void test_unusual_names(void **state)
{
	static const struct kymo_enum_label labels[] = {{"", 5, 5}};
	static const struct kymo_enum_type type = {"e", labels, 1, 0};
	static const struct kymo_field fields[] = {{UINT, 0, 4, 0, 0, "2nd", NULL},
		{UINT, 0, 4, 0, 0, "3", NULL}, {KYMO_FIELD_ENUM, 0, 4, 0, 0, "e", &type}, {0}};
	static const struct kymo_field unnamed[] = {{UINT, 0, 4, 0, 0, "", NULL}, {0}};
	static const struct kymo_field dashed[] = {{UINT, 0, 4, 0, 0, "a-b", NULL}, {0}};
	static const char why[] =
		"a field's name is empty, too long, or has other characters than letters, digits and underscores";

	(void)state;
	assert_int_equal(ky_desc_check(encode_with_fields(fields), NULL), 0);
	refused(unnamed, why);
	refused(dashed, why);
}

static void test_refused(void **state)
{
	static const struct kymo_field none[] = {{0}};
	static const struct kymo_field empty[] = {{STRUCT, 0, 0, 0, 0, "s", none}, {0}};
	static const struct kymo_field twice[] = {
		{UINT, 0, 4, 0, 0, "x", NULL}, {UINT, 0, 4, 0, 0, "x", NULL}, {0}};
	static const struct kymo_field same[] = {{STRUCT, 0, 0, 0, 0, "s", twice}, {0}};
	static const struct kymo_field shorter[] = {
		{UINT, 0, 4, 0, 0, "_x", NULL}, {UINT, 0, 4, 0, 0, "x", NULL}, {0}};
	static const struct kymo_field variants[] = {
		{KYMO_FIELD_ARRAY, KYMO_FIELD_VARIANT, 0, 0, 2, "v", options}, {0}};
	static const struct kymo_field hidden[] = {
		{UINT, 0, 4, KYMO_FIELD_ASIDE, 0, "x", NULL}, {0}};
	static const struct kymo_field filter_only[] = {{STRUCT, 0, 0, 0, 0, "s", hidden}, {0}};
	static const struct kymo_field unknown[] = {{15, 0, 4, 0, 0, "x", NULL}, {0}};
	static const struct kymo_field within[] = {{STRUCT, 0, 0, 0, 0, "s", unknown}, {0}};

	(void)state;
	refused(empty, "a structure or variant has no fields");
	refused(same, "two fields have the same name");
	refused(shorter,
		"a field has the name of one before it, but for an underscore: babeltrace2 would take them for the same");
	refused(variants, "an array's elements are of an unknown kind or size");
	refused(filter_only, "a field in a field is for filters only");
	refused(within, "a field is of an unknown kind or size");
}

static void test_depth(void **state)
{
	struct kymo_field levels[KY_DEPTH_MAX + 1][2] = {{{0}}};

	(void)state;
	for (size_t i = 0; i <= KY_DEPTH_MAX; i++)
		levels[i][0] = (struct kymo_field){
			STRUCT, 0, 0, 0, 0, "s", i ? levels[i - 1] : point};
	assert_int_equal(ky_desc_check(encode_with_fields(levels[KY_DEPTH_MAX - 1]), NULL), 0);
	refused(levels[KY_DEPTH_MAX], "structures are nested too deeply");
}

/* Counted are those of all depths. */
static void test_number(void **state)
{
	static char names[KY_FIELDS_MAX][8];
	struct kymo_field fields[KY_FIELDS_MAX + 1] = {{0}},
						 outer[] = {{STRUCT, 0, 0, 0, 0, "s", fields}, {0}};

	(void)state;
	for (size_t i = 0; i < KY_FIELDS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		fields[i] = (struct kymo_field){UINT, 0, 1, 0, 0, names[i], NULL};
	}
	assert_int_equal(ky_desc_check(encode_with_fields(fields), NULL), 0);
	refused(outer, "the event has too many fields");
	fields[KY_FIELDS_MAX - 1].kind = KYMO_FIELD_END;
	assert_int_equal(ky_desc_check(encode_with_fields(outer), NULL), 0);
}

/* A label without a value has the one behind the previous label's. */
static void test_values_of_labels(void **state)
{
	static const struct kymo_enum_label labels[] = {{"first", KYMO_LABEL_AUTO}, {"one", 1, 1},
		{"behind", KYMO_LABEL_AUTO}, {"to zero", (uint64_t)-5, 0},
		{"last", KYMO_LABEL_AUTO}};
	static const uint64_t wanted[][2] = {{0, 0}, {1, 1}, {2, 2}, {(uint64_t)-5, 0}, {1, 1}};
	static const struct kymo_enum_type type = {"e", labels, KY_ARRAY_SIZE(labels), 1};
	static const struct kymo_field fields[] = {{KYMO_FIELD_ENUM, 0, 4, 0, 0, "e", &type}, {0}};
	struct kymo_enum_label label;
	struct ky_desc d;
	struct ky_desc_field f;

	(void)state;
	ky_desc_open(&d, encode_with_fields(fields));
	assert_true(ky_desc_next_field(&d, &f));
	for (size_t i = 0; i < KY_ARRAY_SIZE(labels); i++) {
		assert_true(ky_field_next_label(&f, &label));
		assert_string_equal(label.label, labels[i].label);
		assert_true(label.lo == wanted[i][0] && label.hi == wanted[i][1]);
	}
	assert_false(ky_field_next_label(&f, &label));
}

/* "provider:name" has at most KY_NAME_MAX bytes. */
static void test_length_of_names(void **state)
{
	static const struct kymo_field none[] = {{0}};
	char name[KY_NAME_MAX];

	(void)state;
	for (size_t len = KY_NAME_MAX - 3; len <= KY_NAME_MAX - 2; len++) {
		const struct kymo_event e = {
			.size = sizeof(e), .provider = "pr", .name = name, .fields = none};
		struct ky_writer w = {.buf = bytes, .cap = sizeof(bytes)};
		const char *why = "nothing";

		memset(name, 'n', len);
		name[len] = '\0';
		ky_desc_encode(&w, &e);
		ky_desc_check((struct ky_bytes){bytes, (uint32_t)w.len}, &why);
		assert_string_equal(why,
			len == KY_NAME_MAX - 3
				? "nothing"
				: "the names of provider and event are longer than 254 characters together");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_unusual_names),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_values_of_labels),
		cmocka_unit_test(test_length_of_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
