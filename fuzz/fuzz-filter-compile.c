/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes filter expressions: an expression that compiles must be a valid program. It must link and
 * run, unless its types do not match.
 */
#include "filter/context.h"
#include "filter/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct kymo_field fields[] = {
	{.kind = KYMO_FIELD_INT, .size = 4, .name = "a"},
	{.kind = KYMO_FIELD_STRING, .name = "s"},
	{.kind = KYMO_FIELD_SEQUENCE, .elem = KYMO_FIELD_UINT, .size = 8, .name = "q"},
	{.kind = KYMO_FIELD_FLOAT, .size = 8, .name = "f"},
	{0},
};

static bool no_value(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	return false;
}

static int no_string(const void *argument, char *buf, size_t size)
{
	return -1;
}

static bool find_context(const char *name, struct ky_filter_context *ret)
{
	char argument[KY_CTX_SPEC_MAX];
	uint32_t kind;

	*ret = (struct ky_filter_context){.number = no_value, .string = no_string};
	return ky_filter_context_find(name, ret, &kind, argument);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char payload[] = "\5\0\0\0text\0\1\0\0\0\7\0\0\0\0\0\0\0\0\0\0\0\0\0\xf8\x3f";
	static uint64_t code[KY_FILTER_CODE_MAX / sizeof(uint64_t)];
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	struct ky_filter_error error;
	char *text = malloc(size + 1);
	int n;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	n = ky_filter_compile(text, find_context, program, &error);
	if (n < 0 && !*error.text)
		abort();
	if (n >= 0) {
		n = ky_filter_link(program, (size_t)n, fields, find_context, code, &error);
		if (n < 0 && ((n != -EINVAL && n != -ENOENT) || !*error.text))
			abort();
		if (n > 0)
			ky_filter_pass(code, payload, sizeof(payload) - 1, NULL, 0);
	}
	free(text);
	return 0;
}
