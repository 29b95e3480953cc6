/* SPDX-License-Identifier: MIT */
#include <stdarg.h>

#include "sessiond/json.h"
#include "sessiond/reply.h"

void reply_add(struct request *r, const char *name, struct json_object *value)
{
	json_add(r->reply, name, value);
}

void reply_add_to(struct request *r, const char *list, struct json_object *value)
{
	struct json_object *array = NULL;

	if (!json_object_object_get_ex(r->reply, list, &array)) {
		reply_add(r, list, json_object_new_array());
		json_object_object_get_ex(r->reply, list, &array);
	}
	json_append(array, value);
}

void reply_note(struct request *r, const char *fmt, ...)
{
	char text[REQUEST_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply_add_to(r, "notes", json_object_new_string(text));
}

void reply_failure(struct request *r, int error, const char *session, const char *message)
{
	const char *code = error == -EEXIST || error == -ENOTEMPTY ? "exists"
			   : error == -EACCES || error == -EPERM   ? "permission"
			   : error == -EBUSY			   ? "busy"
			   : error == -EOPNOTSUPP		   ? "unsupported"
								   : "failed";

	if (r->refusal.code)
		return; /* the first one is told */
	r->refusal.code = code;
	snprintf(r->refusal.text, sizeof(r->refusal.text), "session '%s': %s", session, message);
}
