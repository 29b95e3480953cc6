/* SPDX-License-Identifier: MIT */
#include "sessiond/json.h"

static bool incomplete;

static void leave_out(struct json_object *value)
{
	json_object_put(value);
	incomplete = true;
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

bool json_is_incomplete(void)
{
	bool was = incomplete;

	incomplete = false;
	return was;
}
