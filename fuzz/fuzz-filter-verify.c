/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes filter programs from untrusted sources, for events of any kind, with any payload: a
 * program that links must be safe to run. Input: one byte with the number of fields, four bytes for
 * each field, two bytes with the length of the program, the program, then the payload. The
 * payload's first byte says how it is cut into pieces.
 */
#include "filter/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIELDS_MAX 40

static bool get_number(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	*ret_bits = 1;
	return true;
}

static int get_string(const void *argument, char *buf, size_t size)
{
	memset(buf, 'x', size);
	return (int)size;
}

static bool find_context(const char *name, struct ky_filter_context *ret)
{
	*ret = (struct ky_filter_context){.type = (enum ky_filter_type)(strlen(name) % 5),
		.number = get_number,
		.string = get_string};
	return true;
}

static size_t take_fields(struct kymo_field *fields, const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	static const struct kymo_enum_type type = {.is_signed = 1};
	static const struct kymo_field inner[] = {{.kind = KYMO_FIELD_INT, .size = 4, .name = "a"},
		{.kind = KYMO_FIELD_TEXT, .count = 60, .name = "b"}, {0}};
	static const struct kymo_field loose[] = {{.kind = KYMO_FIELD_STRING, .name = "a"},
		{.kind = KYMO_FIELD_STRUCT, .name = "b", .ext = inner}, {0}};
	size_t n = size ? KY_MIN(data[0], FIELDS_MAX) : 0, i;

	for (i = 0; i < n && 1 + (i + 1) * 4 <= size; i++) {
		const uint8_t *p = data + 1 + i * 4;

		fields[i] = (struct kymo_field){.kind = p[0] % 16,
			.elem = p[1] & 15,
			.size = p[2] & 15,
			.flags = p[1] >> 4,
			.count = (uint32_t)p[3] << (p[2] >> 4),
			.name = names[i % KY_ARRAY_SIZE(names)],
			.ext = p[2] & 16 ? &type : NULL};
		if (fields[i].kind >= KYMO_FIELD_STRUCT || fields[i].elem == KYMO_FIELD_STRUCT)
			fields[i].ext = p[2] & 32 ? loose : p[2] & 16 ? inner : inner + 2;
	}
	fields[i] = (struct kymo_field){0};
	return KY_MIN(1 + i * 4, size);
}

/* Copies each piece of the payload to memory of its own, then runs the program. */
static void run(const void *code, const uint8_t *payload, size_t len)
{
	struct kymo_piece pieces[8];
	size_t step = len ? payload[0] % 64 + 1 : 1, n = 0;
	void *copy;

	for (size_t at = 0; at < len && n < KY_ARRAY_SIZE(pieces); at += step, n++) {
		size_t part = n + 1 == KY_ARRAY_SIZE(pieces) ? len - at : KY_MIN(step, len - at);

		copy = malloc(part);
		if (!copy)
			abort();
		memcpy(copy, payload + at, part);
		pieces[n] = (struct kymo_piece){copy, (uint32_t)part, payload[at] & 3};
	}
	if (n)
		ky_filter_pass(code, NULL, len, pieces, n);
	while (n)
		free((void *)pieces[--n].ptr);
	copy = malloc(len);
	if (!copy && len)
		abort();
	if (len)
		memcpy(copy, payload, len);
	ky_filter_pass(code, copy, len, NULL, 0);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t code[KY_FILTER_CODE_MAX / sizeof(uint64_t)];
	struct kymo_field fields[FIELDS_MAX + 1];
	struct ky_filter_error error;
	size_t at = take_fields(fields, data, size), len = 0;
	int n;

	if (size - at >= 2) {
		len = KY_MIN((size_t)data[at] | (size_t)data[at + 1] << 8, size - at - 2);
		at += 2;
	}
	n = ky_filter_link(data + at, len, fields, find_context, code, &error);
	if (n > 0)
		run(code, data + at + len, size - at - len);
	else if (n != -EBADMSG && ((n != -EINVAL && n != -ENOENT) || !*error.text))
		abort();
	return 0;
}
