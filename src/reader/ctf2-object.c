/* SPDX-License-Identifier: MIT */
/* Memory, errors, and the properties of JSON objects, for the parser of CTF 2. */
#include "reader/ctf2-parse.h"

#include <stdarg.h>

#define MAX_ALIGN ((uint64_t)1 << 31)

void ky_ctf2_fail(struct ky_ctf2 *p, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	p->error->line = p->line;
	p->error->column = 1;
	va_start(ap, fmt);
	vsnprintf(p->error->text, sizeof(p->error->text), fmt, ap);
	va_end(ap);
}

void *ky_ctf2_alloc(struct ky_ctf2 *p, size_t n)
{
	void *m = p->failed ? NULL : ky_arena_alloc(&p->tsdl->arena, n);

	if (!m)
		ky_ctf2_fail(p, "the metadata is too large");
	return m;
}

void *ky_ctf2_grow(struct ky_ctf2 *p, void *array, size_t *n, size_t *cap, size_t size)
{
	void *m = p->failed ? NULL : ky_arena_grow(&p->tsdl->arena, array, n, cap, size);

	if (!m)
		ky_ctf2_fail(p, "the metadata is too large");
	return m;
}

const char *ky_ctf2_intern(struct ky_ctf2 *p, const char *text)
{
	const char *interned = ky_names_intern(&p->tsdl->names, text, strlen(text));

	if (!interned)
		ky_ctf2_fail(p, "the metadata is too large");
	return interned;
}

bool ky_ctf2_add_name(struct ky_ctf2 *p, const void *owner, const char *name, size_t number)
{
	uint32_t *at = name ? ky_names_at(&p->tsdl->names, owner, name) : NULL;

	if (!at) {
		ky_ctf2_fail(p, "the metadata is too large");
		return true;
	}
	if (*at != UINT32_MAX)
		return false;
	*at = (uint32_t)number;
	return true;
}

json *ky_ctf2_member(json *o, const char *key)
{
	json *found = NULL;

	json_object_object_get_ex(o, key, &found);
	return found;
}

json *ky_ctf2_kind(struct ky_ctf2 *p, json *o, const char *key, json_type kind)
{
	json *found = ky_ctf2_member(o, key);

	if (found && json_object_get_type(found) != kind) {
		ky_ctf2_fail(p, "'%s' is not %s", key,
			kind == json_type_array
				? "an array"
				: (kind == json_type_object ? "an object" : "a string"));
		return NULL;
	}
	return found;
}

const char *ky_ctf2_text(struct ky_ctf2 *p, json *o, const char *key)
{
	json *found = ky_ctf2_kind(p, o, key, json_type_string);

	return found ? ky_ctf2_intern(p, json_object_get_string(found)) : NULL;
}

uint64_t ky_ctf2_number_of(struct ky_ctf2 *p, json *v, const char *what)
{
	if (json_object_get_type(v) != json_type_int)
		ky_ctf2_fail(p, "'%s' is not an integer", what);
	return json_object_get_int64(v) < 0 ? (uint64_t)json_object_get_int64(v)
					    : json_object_get_uint64(v);
}

uint64_t ky_ctf2_number(struct ky_ctf2 *p, json *o, const char *key, uint64_t missing, uint64_t max)
{
	json *found = ky_ctf2_member(o, key);
	uint64_t n = found ? ky_ctf2_number_of(p, found, key) : missing;

	if (found && (json_object_get_int64(found) < 0 || n > max))
		ky_ctf2_fail(
			p, "'%s' is not a number from 0 to %llu", key, (unsigned long long)max);
	return n;
}

uint32_t ky_ctf2_align(struct ky_ctf2 *p, json *o, const char *key, uint32_t missing)
{
	uint64_t n = ky_ctf2_number(p, o, key, missing, MAX_ALIGN);

	if (!ky_is_pow2(n))
		ky_ctf2_fail(p, "'%s' is not a power of two", key);
	return (uint32_t)n;
}

void ky_ctf2_refuse_extensions(struct ky_ctf2 *p, json *o)
{
	json *spaces = ky_ctf2_kind(p, o, "extensions", json_type_object);

	if (!spaces)
		return;
	json_object_object_foreach(spaces, space, names)
	{
		if (json_object_get_type(names) != json_type_object) {
			ky_ctf2_fail(p, "the extension '%.64s' is not supported", space);
			return;
		}
		json_object_object_foreach(names, name, unused)
		{
			(void)unused;
			ky_ctf2_fail(p, "the extension '%.64s' of '%.64s' is not supported", name,
				space);
		}
	}
}
