/* SPDX-License-Identifier: MIT */
#include "sessiond/json.h"

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

bool json_is_incomplete(unsigned int *seen)
{
	unsigned int before = *seen;

	*seen = n_left_out;
	return n_left_out != before;
}
