/* SPDX-License-Identifier: MIT */
/*
 * JSON values for users of the control library: a thin layer over json-c, whose types are not in
 * the public header. A struct kymo_value is a struct json_object, used through a cast.
 */
#include <kymo/ctl.h>

#include <json-c/json.h>

#include "base/util.h"

static struct json_object *object_of(const struct kymo_value *v)
{
	return (struct json_object *)v;
}

struct kymo_value *kymo_value_new(void)
{
	return (struct kymo_value *)json_object_new_object();
}

void kymo_value_free(struct kymo_value *v)
{
	json_object_put(object_of(v));
}

/* Consumes member. */
static int set_member(struct kymo_value *v, const char *name, struct json_object *member)
{
	struct json_object *o = object_of(v);

	if (!member)
		return -ENOMEM;
	if (!json_object_is_type(o, json_type_object)) {
		json_object_put(member);
		return -EINVAL;
	}
	if (json_object_object_add(o, name, member) < 0) {
		json_object_put(member);
		return -ENOMEM;
	}
	return 0;
}

int kymo_value_set_string(struct kymo_value *v, const char *name, const char *value)
{
	return set_member(v, name, json_object_new_string(value));
}

int kymo_value_set_u64(struct kymo_value *v, const char *name, uint64_t value)
{
	return set_member(v, name, json_object_new_uint64(value));
}

int kymo_value_set_bool(struct kymo_value *v, const char *name, int value)
{
	return set_member(v, name, json_object_new_boolean(value));
}

int kymo_value_set_list(struct kymo_value *v, const char *name)
{
	return set_member(v, name, json_object_new_array());
}

/* Appends to the list `name`. Consumes element. */
static int add_element(struct kymo_value *v, const char *name, struct json_object *element)
{
	struct json_object *list;
	int r = 0;

	if (!element)
		return -ENOMEM;
	if (!json_object_object_get_ex(object_of(v), name, &list)) {
		r = kymo_value_set_list(v, name);
		json_object_object_get_ex(object_of(v), name, &list);
	}
	if (!r && !json_object_is_type(list, json_type_array))
		r = -EINVAL;
	if (!r && json_object_array_add(list, element) < 0)
		r = -ENOMEM;
	if (r)
		json_object_put(element);
	return r;
}

int kymo_value_add_string(struct kymo_value *v, const char *name, const char *value)
{
	return add_element(v, name, json_object_new_string(value));
}

int kymo_value_set(struct kymo_value *v, const char *name, const struct kymo_value *value)
{
	return set_member(v, name, json_object_get(object_of(value)));
}

int kymo_value_add(struct kymo_value *v, const char *name, const struct kymo_value *value)
{
	return add_element(v, name, json_object_get(object_of(value)));
}

const struct kymo_value *kymo_value_get(const struct kymo_value *v, const char *name)
{
	struct json_object *member = NULL;

	json_object_object_get_ex(object_of(v), name, &member);
	return (const struct kymo_value *)member;
}

size_t kymo_value_count(const struct kymo_value *v)
{
	if (!json_object_is_type(object_of(v), json_type_array))
		return 0;
	return json_object_array_length(object_of(v));
}

const struct kymo_value *kymo_value_at(const struct kymo_value *v, size_t i)
{
	if (i >= kymo_value_count(v))
		return NULL;
	return (const struct kymo_value *)json_object_array_get_idx(object_of(v), i);
}

const char *kymo_value_string(const struct kymo_value *v)
{
	if (!json_object_is_type(object_of(v), json_type_string))
		return "";
	return json_object_get_string(object_of(v));
}

uint64_t kymo_value_u64(const struct kymo_value *v)
{
	return json_object_is_type(object_of(v), json_type_int)
		       ? json_object_get_uint64(object_of(v))
		       : 0;
}

int64_t kymo_value_i64(const struct kymo_value *v)
{
	return json_object_is_type(object_of(v), json_type_int)
		       ? json_object_get_int64(object_of(v))
		       : 0;
}

int kymo_value_bool(const struct kymo_value *v)
{
	return json_object_is_type(object_of(v), json_type_boolean) &&
	       json_object_get_boolean(object_of(v));
}

const char *kymo_value_json(const struct kymo_value *v)
{
	return json_object_to_json_string_ext(
		object_of(v), JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
}

int kymo_reply_ok(const struct kymo_value *reply)
{
	return kymo_value_bool(kymo_value_get(reply, "ok"));
}

const char *kymo_reply_code(const struct kymo_value *reply)
{
	return kymo_value_string(kymo_value_get(reply, "code"));
}

const char *kymo_reply_error(const struct kymo_value *reply)
{
	return kymo_value_string(kymo_value_get(reply, "error"));
}
