/* SPDX-License-Identifier: MIT */
#include "sessiond/control/parse.h"

#include <stdarg.h>

#include "base/utf8.h"
#include "sessiond/control/json.h"
#include "sessiond/model/option.h"
#include "svc/log.h"

#define JSON_DEPTH_MAX 8
#define STRING_MAX     4096 /* check_params() names it */

void refusal_set(struct refusal *refusal, const char *code, const char *fmt, ...)
{
	char text[REQUEST_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	refusal->code = code;
	ky_log_escape(refusal->text, sizeof(refusal->text), text);
}

static bool is_string(struct json_object *v)
{
	size_t len;

	if (!json_object_is_type(v, json_type_string))
		return false;
	len = (size_t)json_object_get_string_len(v);
	return len <= STRING_MAX && strlen(json_object_get_string(v)) == len;
}

static bool has_type(struct json_object *v, enum param_type type)
{
	switch (type) {
	case PARAM_STRING:
		return is_string(v);
	case PARAM_NUMBER:
		return json_object_is_type(v, json_type_int) && json_object_get_int64(v) >= 0 &&
		       json_object_get_int64(v) <= INT32_MAX;
	case PARAM_BYTES:
		return json_object_is_type(v, json_type_int) && json_object_get_int64(v) >= 0;
	case PARAM_BOOL:
		return json_object_is_type(v, json_type_boolean);
	case PARAM_OPTION:
		return has_type(v, PARAM_BYTES) || is_string(v);
	case PARAM_STRINGS:
		if (!json_object_is_type(v, json_type_array))
			return false;
		for (size_t i = 0; i < json_object_array_length(v); i++)
			if (!is_string(json_object_array_get_idx(v, i)))
				return false;
		return true;
	}
	return false;
}

static const struct param *find_param(const struct command *c, const char *name)
{
	static const struct param session = {"session", PARAM_STRING, false};
	static const struct param all = {"all", PARAM_BOOL, false};
	static const struct param no_wait = {"no_wait", PARAM_BOOL, false};

	if (c->scope != SCOPE_NONE && !strcmp(name, "session"))
		return &session;
	if (c->scope == SCOPE_SESSIONS && !strcmp(name, "all"))
		return &all;
	if (c->scope == SCOPE_SESSIONS && !strcmp(name, "no_wait"))
		return &no_wait;
	for (const struct param *p = c->params; p->name; p++)
		if (p->type == PARAM_OPTION ? option_find(name) != NULL : !strcmp(p->name, name))
			return p;
	return NULL;
}

/* A list that a command needs must not be empty. */
static bool is_missing(struct json_object *object, const struct param *p)
{
	struct json_object *v;

	return !json_object_object_get_ex(object, p->name, &v) ||
	       (p->type == PARAM_STRINGS && !json_object_array_length(v));
}

static void refuse_param(const struct command *c, const char *name, struct refusal *refusal)
{
	struct ky_buf why = {0};

	for (const struct param *p = c->params; p->name; p++)
		if (p->type == PARAM_OPTION)
			option_explain_unknown(&why, name);
	if (!why.len)
		ky_buf_printf(&why, "'%s' has no parameter '%s'", c->name, name);
	refusal_set(refusal, "usage", "%s", why.data ? why.data : name);
	ky_buf_deinit(&why);
}

static bool check_params(
	struct json_object *object, const struct command *c, struct refusal *refusal)
{
	static const char *const types[] = {[PARAM_STRING] = "a string of at most 4096 bytes",
		[PARAM_STRINGS] = "a list of strings of at most 4096 bytes each",
		[PARAM_NUMBER] = "a number from 0 to 2147483647",
		[PARAM_BYTES] = "a number of bytes",
		[PARAM_BOOL] = "true or false",
		[PARAM_OPTION] = "a number or a string of at most 4096 bytes"};

	json_object_object_foreach(object, name, value)
	{
		const struct param *p = find_param(c, name);

		if (!strcmp(name, "command"))
			continue;
		if (!p) {
			refuse_param(c, name, refusal);
			return false;
		}
		if (!has_type(value, p->type)) {
			refusal_set(refusal, "usage", "parameter '%s' of '%s' must be %s", name,
				c->name, types[p->type]);
			return false;
		}
	}
	for (const struct param *p = c->params; p->name; p++) {
		if (p->required && is_missing(object, p)) {
			refusal_set(refusal, "usage", "'%s' needs the parameter '%s'", c->name,
				p->name);
			return false;
		}
	}
	return true;
}

static struct json_object *parse_line(const char *line, size_t len)
{
	/* json-c would take surrogates and longer forms. */
	return ky_utf8_valid(line, len) ? json_parse(line, len, JSON_DEPTH_MAX) : NULL;
}

bool request_parse(const char *line, size_t len, struct json_object **ret_object,
	const struct command **ret_command, struct refusal *refusal)
{
	struct json_object *object = parse_line(line, len), *name = NULL;
	const struct command *c;

	if (!object) {
		refusal_set(refusal, "usage",
			"a request must be one JSON object on one line, in UTF-8");
		return false;
	}
	json_object_object_get_ex(object, "command", &name);
	if (!name || !is_string(name)) {
		refusal_set(refusal, "usage", "a request must have a string named 'command'");
		json_object_put(object);
		return false;
	}
	for (c = commands; c->name; c++)
		if (!strcmp(c->name, json_object_get_string(name)))
			break;
	if (!c->name)
		refusal_set(refusal, "usage", "unknown command '%s'", json_object_get_string(name));
	if (!c->name || !check_params(object, c, refusal)) {
		json_object_put(object);
		return false;
	}
	*ret_object = object;
	*ret_command = c;
	return true;
}
