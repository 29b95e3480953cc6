/* SPDX-License-Identifier: MIT */
#include "sessiond/control/json.h"

#include <json-c/printbuf.h>

#include "base/util.h"

static unsigned int n_left_out;

static void leave_out(struct json_object *value)
{
	json_object_put(value);
	n_left_out++;
}

void json_add(struct json_object *o, const char *name, struct json_object *value)
{
	if (!o || !value || json_object_object_add(o, name, value) < 0)
		leave_out(value);
}

void json_append(struct json_object *list, struct json_object *value)
{
	if (!list || !value || json_object_array_add(list, value) < 0)
		leave_out(value);
}

void json_append_text(void *list, const char *text)
{
	size_t n = list ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(list, i)), text))
			return;
	json_append(list, json_object_new_string(text));
}

bool json_is_incomplete(unsigned int *seen)
{
	unsigned int before = *seen;

	*seen = n_left_out;
	return n_left_out != before;
}

static size_t count_members(struct json_object *o)
{
	size_t n = 0;

	if (json_object_is_type(o, json_type_array))
		for (size_t i = 0; i < json_object_array_length(o); i++)
			n += count_members(json_object_array_get_idx(o, i));
	if (!json_object_is_type(o, json_type_object))
		return n;
	json_object_object_foreach(o, name, value)
	{
		(void)name;
		n += 1 + count_members(value);
	}
	return n;
}

/* Behind a quotation mark: has the parser just read a member's name? */
static bool has_name(const struct json_tokener *t)
{
	return t->stack[t->depth].saved_state == json_tokener_state_object_field_end;
}

/*
 * Parses up to one quotation mark after the other: a name may end behind each, and there may have
 * been no memory for it. The count of the members shows if one is missing for lack of memory.
 */
static struct json_object *parse_pieces(struct json_tokener *t, const char *text, size_t len)
{
	const char *at = text, *end = text + len + 1, *quote;
	struct json_object *o = NULL;
	size_t n_names = 0, n, n_parsed;

	do {
		quote = memchr(at, '"', (size_t)(end - at));
		n = (size_t)((quote ? quote + 1 : end) - at);
		o = json_tokener_parse_ex(t, at, (int)n);
		if (has_name(t) && !t->stack[t->depth].obj_field_name)
			return NULL;
		n_names += has_name(t);
		at += n;
	} while (json_tokener_get_error(t) == json_tokener_continue && at < end);
	n_parsed = (size_t)(at - text) - n + json_tokener_get_parse_end(t);
	if (json_tokener_get_error(t) == json_tokener_success && n_parsed >= len &&
		json_object_is_type(o, json_type_object) && count_members(o) == n_names)
		return o;
	json_object_put(o);
	return NULL;
}

struct json_object *json_parse(const char *text, size_t len, int max_depth)
{
	struct json_tokener *t = json_tokener_new_ex(max_depth);
	struct json_object *o = NULL;

	if (!t)
		return NULL;
	json_tokener_set_flags(t, JSON_TOKENER_STRICT);
	/* Room for any string; it would be cut off where there is none. */
	if (printbuf_memset(t->pb, (int)len, 0, 1) >= 0)
		o = parse_pieces(t, text, len);
	json_tokener_free(t);
	return o;
}
