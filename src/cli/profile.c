/* SPDX-License-Identifier: MIT */
#include "cli/profile.h"

#include <json-c/json.h>
#include <limits.h>

#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/probe.h"

#define DEPTH_MAX 16

enum use {
	OWN,	/* has a meaning here */
	SENT,	/* goes into the request that makes the object */
	OPTION, /* likewise; may be a string instead of a number */
};

/* A member of an object in the file: the same for reading and writing. */
struct member {
	const char *name;
	enum json_type type;
	enum use use;
};

static const struct member file_members[] = {{"$schema", json_type_string, OWN},
	{"version", json_type_int, OWN}, {"sessions", json_type_array, OWN}, {0}};

static const struct member session_members[] = {{"name", json_type_string, OWN},
	{"output", json_type_string, OWN}, {"snapshot", json_type_boolean, SENT},
	{"seconds", json_type_int, SENT}, {"absolute_clock", json_type_boolean, SENT},
	{"shm_path", json_type_string, SENT}, {"state", json_type_string, OWN},
	{"channels", json_type_array, OWN}, {"tracked", json_type_object, OWN},
	{"rotation", json_type_object, OWN}, {"triggers", json_type_array, OWN}, {0}};

static const struct member channel_members[] = {{"name", json_type_string, OWN},
	{"domain", json_type_string, SENT}, {"enabled", json_type_boolean, OWN},
	{"buffers", json_type_string, OPTION}, {"mode", json_type_string, OPTION},
	{"subbuf_size", json_type_int, OPTION}, {"num_subbuf", json_type_int, OPTION},
	{"burst_size", json_type_int, OPTION}, {"pool_size", json_type_int, OPTION},
	{"event_conflict", json_type_string, OPTION}, {"switch_timer", json_type_int, OPTION},
	{"read_timer", json_type_int, OPTION}, {"blocking_timeout", json_type_int, OPTION},
	{"tracefile_size", json_type_int, OPTION}, {"tracefile_count", json_type_int, OPTION},
	{"contexts", json_type_array, OWN}, {"rules", json_type_array, OWN}, {0}};

static const struct member rule_members[] = {{"pattern", json_type_string, OWN},
	{"kind", json_type_string, OWN}, {"place", json_type_string, OWN},
	{"exclude", json_type_array, SENT}, {"loglevel", json_type_int, SENT},
	{"loglevel_only", json_type_int, SENT}, {"filter", json_type_string, SENT},
	{"enabled", json_type_boolean, OWN}, {0}};

static const struct member tracked_members[] = {{"vpid", json_type_array, OWN},
	{"vuid", json_type_array, OWN}, {"vgid", json_type_array, OWN},
	{"pid", json_type_array, OWN}, {0}};

static const struct member rotation_members[] = {{"timer", json_type_int, SENT},
	{"size", json_type_int, SENT}, {"max_disk", json_type_int, SENT},
	{"keep_free", json_type_int, SENT}, {"keep_chunks", json_type_int, SENT},
	{"keep_bytes", json_type_int, SENT}, {"keep_s", json_type_int, SENT}, {0}};

static const struct member trigger_members[] = {{"name", json_type_string, OWN},
	{"when", json_type_string, SENT}, {"do", json_type_string, SENT},
	{"rate", json_type_string, SENT}, {"keep", json_type_string, SENT}, {0}};

/* --- writing --- */

/* Copies the members of the table that the object has. */
static struct json_object *copy_members(struct json_object *from, const struct member *members)
{
	struct json_object *to = json_object_new_object(), *v;

	for (; members->name; members++)
		if (json_object_object_get_ex(from, members->name, &v))
			json_object_object_add(to, members->name, json_object_get(v));
	return to;
}

static bool is_empty(struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_null:
		return true;
	case json_type_boolean:
	case json_type_int:
		return !json_object_get_int64(v);
	case json_type_string:
		return !json_object_get_string_len(v);
	case json_type_array:
		return !json_object_array_length(v);
	default:
		return !json_object_object_length(v);
	}
}

/* Removes a member that says what its absence says, too. */
static void drop_empty(struct json_object *o, const char *name)
{
	if (is_empty(json_object_object_get(o, name)))
		json_object_object_del(o, name);
}

static bool is_text(struct json_object *o, const char *name, const char *text)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) && !strcmp(json_object_get_string(v), text);
}

static struct json_object *save_rule(struct json_object *rule)
{
	const char *type = json_object_get_string(json_object_object_get(rule, "loglevel_type"));
	struct json_object *to = copy_members(rule, rule_members);

	if (type && !strcmp(type, "only")) {
		json_object_object_add(to, "loglevel_only",
			json_object_get(json_object_object_get(to, "loglevel")));
		json_object_object_del(to, "loglevel");
	}
	if (is_text(to, "kind", "event"))
		json_object_object_del(to, "kind");
	drop_empty(to, "exclude");
	drop_empty(to, "filter");
	return to;
}

/* Replaces the elements of the list by what `save` makes of them. */
static void save_list(struct json_object *o, const char *name,
	struct json_object *(*save)(struct json_object *element))
{
	struct json_object *from = json_object_object_get(o, name);
	struct json_object *to = json_object_new_array();

	for (size_t i = 0; from && i < json_object_array_length(from); i++)
		json_object_array_add(to, save(json_object_array_get_idx(from, i)));
	json_object_object_add(o, name, to);
}

/* Leaves out what a channel of the kernel always has. */
static void drop_user_options(struct json_object *channel)
{
	static const char *const options[] = {
		"buffers", "burst_size", "pool_size", "event_conflict", "blocking_timeout"};
	struct json_object *contexts = json_object_object_get(channel, "contexts");

	for (size_t i = 0; i < KY_ARRAY_SIZE(options); i++)
		json_object_object_del(channel, options[i]);
	for (size_t i = 0; contexts && i < json_object_array_length(contexts); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(contexts, i)),
			    "tid")) {
			json_object_array_del_idx(contexts, i, 1);
			return;
		}
}

static struct json_object *save_channel(struct json_object *channel)
{
	struct json_object *to = copy_members(channel, channel_members);

	if (is_text(to, "domain", "kernel"))
		drop_user_options(to);
	else
		json_object_object_del(to, "domain");
	drop_empty(to, "contexts");
	save_list(to, "rules", save_rule);
	return to;
}

/* Leaves attributes out of which all values are tracked. */
static void save_tracked(struct json_object *o)
{
	struct json_object *tracked = copy_members(
		json_object_object_get(o, "tracked"), tracked_members);
	struct json_object *list;

	json_object_object_add(o, "tracked", tracked);
	for (const struct member *m = tracked_members; m->name; m++)
		if (json_object_object_get_ex(tracked, m->name, &list) &&
			json_object_array_length(list) == 1 &&
			!strcmp(json_object_get_string(json_object_array_get_idx(list, 0)), "all"))
			json_object_object_del(tracked, m->name);
	drop_empty(o, "tracked");
}

static void save_rotation(struct json_object *o)
{
	struct json_object *to = copy_members(
		json_object_object_get(o, "rotation"), rotation_members);

	for (const struct member *m = rotation_members; m->name; m++)
		drop_empty(to, m->name);
	json_object_object_add(o, "rotation", to);
	drop_empty(o, "rotation");
}

static struct json_object *save_trigger(struct json_object *trigger)
{
	struct json_object *to = copy_members(trigger, trigger_members);

	drop_empty(to, "rate");
	drop_empty(to, "keep");
	return to;
}

struct json_object *profile_new(void)
{
	struct json_object *profile = json_object_new_object();

	if (profile) {
		json_object_object_add(profile, "version", json_object_new_int(PROFILE_VERSION));
		json_object_object_add(profile, "sessions", json_object_new_array());
	}
	return profile;
}

int profile_add(struct json_object *profile, const struct kymo_value *session,
	const struct kymo_value *triggers)
{
	struct json_object *from = json_tokener_parse(kymo_value_json(session)), *to;

	if (!from)
		return -ENOMEM;
	to = copy_members(from, session_members);
	json_object_object_add(to, "triggers", json_tokener_parse(kymo_value_json(triggers)));
	save_list(to, "triggers", save_trigger);
	drop_empty(to, "triggers");
	drop_empty(to, "snapshot");
	drop_empty(to, "seconds");
	drop_empty(to, "absolute_clock");
	drop_empty(to, "shm_path");
	save_list(to, "channels", save_channel);
	save_tracked(to);
	save_rotation(to);
	json_object_put(from);
	return json_object_array_add(json_object_object_get(profile, "sessions"), to) < 0 ? -ENOMEM
											  : 0;
}

/* --- reading --- */

struct loader {
	struct cli *cli;
	struct kymo_ctl *ctl;
	const char *file, *text;
	const struct profile_options *options;
	const char *session; /* the session that is being made */
	bool kernel;	     /* its present channel records the kernel */
	char path[512];	     /* of the value in question: "sessions/0/name" */
};

/* Returns the length of the path before the part, for leave_part(). */
static size_t enter_part(struct loader *l, const char *part)
{
	size_t len = strlen(l->path);

	snprintf(l->path + len, sizeof(l->path) - len, "%s%s", len ? "/" : "", part);
	return len;
}

static size_t enter_element(struct loader *l, const char *list, size_t i)
{
	char part[64];

	snprintf(part, sizeof(part), "%s/%zu", list, i);
	return enter_part(l, part);
}

static void leave_part(struct loader *l, size_t len)
{
	l->path[len] = '\0';
}

static int fail_at(struct loader *l, const char *code, const char *fmt, ...) KY_PRINTF(3, 4);

static int fail_at(struct loader *l, const char *code, const char *fmt, ...)
{
	struct ky_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	ky_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	cli_fail(l->cli, code, "%s:%u: %s", l->file, profile_line(l->text, l->path),
		text.data ? text.data : "no memory");
	ky_buf_deinit(&text);
	return CLI_FAILED;
}

static bool has_type(const struct member *m, struct json_object *v)
{
	if (m->use == OPTION && json_object_is_type(v, json_type_string))
		return true;
	return json_object_is_type(v, m->type);
}

static int check_member(
	struct loader *l, const struct member *members, const char *name, struct json_object *v)
{
	static const char *const types[] = {[json_type_boolean] = "true or false",
		[json_type_int] = "a number",
		[json_type_object] = "an object",
		[json_type_array] = "a list",
		[json_type_string] = "a string"};
	const char *names[32] = {NULL}, *near;
	const struct member *m = members;

	for (size_t i = 0; m->name && strcmp(m->name, name) != 0; m++)
		names[i++] = m->name;
	near = m->name ? NULL : cli_nearest(name, names);
	if (!m->name)
		return fail_at(l, "failed", "unknown member '%s'%s%s%s", name,
			near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
	return has_type(m, v) ? CLI_OK
			      : fail_at(l, "failed", "'%s' must be %s", name, types[m->type]);
}

static int check_members(struct loader *l, struct json_object *o, const struct member *members)
{
	int code = CLI_OK;

	if (!json_object_is_type(o, json_type_object))
		return fail_at(l, "failed", "this must be an object, { ... }");
	json_object_object_foreach(o, name, v)
	{
		size_t len = enter_part(l, name);

		code = check_member(l, members, name, v);
		leave_part(l, len);
		if (code)
			break;
	}
	return code;
}

static struct json_object *member_of(struct json_object *o, const char *name)
{
	return o ? json_object_object_get(o, name) : NULL;
}

static const char *string_of(struct json_object *o, const char *name)
{
	struct json_object *v = member_of(o, name);

	return v ? json_object_get_string(v) : "";
}

static size_t count_of(struct json_object *o, const char *name)
{
	struct json_object *v = member_of(o, name);

	return v ? json_object_array_length(v) : 0;
}

/* Adds the member to a request under another name, if the object has it. */
static int put_as(struct loader *l, struct kymo_value *params, struct json_object *o,
	const char *name, const char *as)
{
	struct json_object *v = member_of(o, name), *e;
	size_t len;
	int r = 0;

	switch (json_object_get_type(v)) {
	case json_type_string:
		r = kymo_value_set_string(params, as, json_object_get_string(v));
		break;
	case json_type_int:
		if (json_object_get_int64(v) < 0) {
			len = enter_part(l, name);
			r = fail_at(l, "failed", "'%s' cannot be negative", name);
			leave_part(l, len);
			return r;
		}
		r = kymo_value_set_u64(params, as, json_object_get_uint64(v));
		break;
	case json_type_boolean:
		r = kymo_value_set_bool(params, as, json_object_get_boolean(v));
		break;
	case json_type_array:
		for (size_t i = 0; i < json_object_array_length(v) && !r; i++) {
			e = json_object_array_get_idx(v, i);
			len = enter_element(l, name, i);
			if (!json_object_is_type(e, json_type_string))
				r = fail_at(l, "failed", "this must be a string");
			leave_part(l, len);
			if (r)
				return r;
			r = kymo_value_add_string(params, as, json_object_get_string(e));
		}
		break;
	default:
		break;
	}
	return cli_params_added(l->cli, r);
}

static int copy_member(
	struct loader *l, struct kymo_value *params, struct json_object *o, const char *name)
{
	return put_as(l, params, o, name, name);
}

/* Adds to the request that makes the object what the table says. */
static int copy_sent(struct loader *l, struct kymo_value *params, struct json_object *o,
	const struct member *members)
{
	int code = CLI_OK;

	for (const struct member *m = members; m->name && !code; m++)
		if (m->use != OWN)
			code = copy_member(l, params, o, m->name);
	return code;
}

static struct kymo_value *new_params(struct loader *l, const char *channel)
{
	struct kymo_value *params = cli_params_new(l->cli);

	if (params)
		kymo_value_set_string(params, "session", l->session);
	if (params && channel)
		kymo_value_set_string(params, "channel", channel);
	return params;
}

/* Sends a request. A refusal is about the line of l->path. */
static int request_for_path(struct loader *l, const char *command, const struct kymo_value *params)
{
	_cleanup_value_ struct kymo_value *reply = NULL;
	int code = cli_try(l->cli, l->ctl, command, params, &reply);

	if (code || kymo_reply_ok(reply))
		return code;
	return fail_at(l, kymo_reply_code(reply), "%s", kymo_reply_error(reply));
}

/* Adds the rule's pattern, or the place that it names, which may be another one than it was. */
static int put_subject(struct loader *l, struct kymo_value *params, struct json_object *r)
{
	const char *pattern = string_of(r, "pattern");
	int code;

	if (member_of(r, "place"))
		return probe_params(
			l->cli, string_of(r, "kind"), string_of(r, "place"), pattern, params);
	code = cli_params_added(l->cli, kymo_value_add_string(params, "patterns", pattern));
	return code ? code : copy_member(l, params, r, "kind");
}

/* The parameters of enable-event for a rule. */
static struct kymo_value *rule_params(struct loader *l, const char *channel, struct json_object *r)
{
	struct kymo_value *params = new_params(l, channel);
	int code = params ? put_subject(l, params, r) : CLI_FAILED;

	if (!code && l->kernel)
		kymo_value_set_string(params, "domain", "kernel");
	if (!code)
		code = copy_sent(l, params, r, rule_members);
	if (!code)
		return params;
	kymo_value_free(params);
	return NULL;
}

static bool is_enabled(struct json_object *o)
{
	struct json_object *v = member_of(o, "enabled");

	return !v || json_object_get_boolean(v);
}

static int enable_rule(struct loader *l, const char *channel, struct json_object *rule)
{
	_cleanup_value_ struct kymo_value *params = NULL;
	int code = check_members(l, rule, rule_members);

	if (!code && !*string_of(rule, "pattern"))
		code = fail_at(l, "failed", "a rule needs a 'pattern'");
	if (code)
		return code;
	params = rule_params(l, channel, rule);
	return params ? request_for_path(l, "enable-event", params) : CLI_FAILED;
}

/* A rule that one before it has disabled, too, is not found any more. */
static int disable_rule(struct loader *l, const char *channel, struct json_object *rule)
{
	_cleanup_value_ struct kymo_value *params = new_params(l, channel), *reply = NULL;
	int code = params ? kymo_value_add_string(params, "patterns", string_of(rule, "pattern"))
			  : CLI_FAILED;

	if (!code)
		code = copy_member(l, params, rule, "filter");
	if (!code)
		code = cli_try(l->cli, l->ctl, "disable-event", params, &reply);
	if (code || kymo_reply_ok(reply) || !strcmp(kymo_reply_code(reply), "not-found"))
		return code;
	return fail_at(l, kymo_reply_code(reply), "%s", kymo_reply_error(reply));
}

/* Calls f for each rule that is enabled in the file, or for each that is not. */
static int for_rules(struct loader *l, struct json_object *channel, bool enabled,
	int (*f)(struct loader *l, const char *channel, struct json_object *rule))
{
	struct json_object *rules = member_of(channel, "rules");
	int code = CLI_OK;

	for (size_t i = 0; i < count_of(channel, "rules") && !code; i++) {
		struct json_object *rule = json_object_array_get_idx(rules, i);
		size_t len = enter_element(l, "rules", i);

		if (is_enabled(rule) == enabled)
			code = f(l, string_of(channel, "name"), rule);
		leave_part(l, len);
	}
	return code;
}

/*
 * Makes the rules in the file's order. disable-event may disable several rules of one pattern, so
 * the others are enabled again afterwards.
 */
static int load_rules(struct loader *l, struct json_object *channel)
{
	struct json_object *rules = member_of(channel, "rules");
	bool some_disabled = false;
	int code = CLI_OK;

	for (size_t i = 0; i < count_of(channel, "rules") && !code; i++) {
		struct json_object *rule = json_object_array_get_idx(rules, i);
		size_t len = enter_element(l, "rules", i);

		code = enable_rule(l, string_of(channel, "name"), rule);
		some_disabled |= !code && !is_enabled(rule);
		leave_part(l, len);
	}
	if (code || !some_disabled)
		return code;
	code = for_rules(l, channel, false, disable_rule);
	return code ? code : for_rules(l, channel, true, enable_rule);
}

static int enable_channel(struct loader *l, struct json_object *channel)
{
	_cleanup_value_ struct kymo_value *params = new_params(l, string_of(channel, "name"));
	int code = params ? copy_sent(l, params, channel, channel_members) : CLI_FAILED;

	return code ? code : request_for_path(l, "enable-channel", params);
}

static int add_contexts(struct loader *l, struct json_object *channel)
{
	_cleanup_value_ struct kymo_value *params = new_params(l, string_of(channel, "name"));
	size_t len = enter_part(l, "contexts");
	int code;

	leave_part(l, len);
	code = params ? copy_member(l, params, channel, "contexts") : CLI_FAILED;
	if (!code)
		code = copy_member(l, params, channel, "domain");
	enter_part(l, "contexts");
	if (!code)
		code = request_for_path(l, "add-context", params);
	leave_part(l, len);
	return code;
}

static int load_channel(struct loader *l, struct json_object *channel)
{
	_cleanup_value_ struct kymo_value *params = NULL;
	int code = check_members(l, channel, channel_members);

	l->kernel = !strcmp(string_of(channel, "domain"), "kernel");
	if (!code && !*string_of(channel, "name"))
		code = fail_at(l, "failed", "a channel needs a 'name'");
	if (!code)
		code = enable_channel(l, channel);
	if (!code && count_of(channel, "contexts"))
		code = add_contexts(l, channel);
	if (!code)
		code = load_rules(l, channel);
	if (code || is_enabled(channel))
		return code;
	params = new_params(l, string_of(channel, "name"));
	return params ? request_for_path(l, "disable-channel", params) : CLI_FAILED;
}

/* Tracks none first, because to track a value adds it to those that are tracked. */
static int track_from_json(struct loader *l, struct json_object *tracked, const char *attribute)
{
	_cleanup_value_ struct kymo_value *none = new_params(l, NULL), *some = new_params(l, NULL);
	size_t len = enter_part(l, attribute);
	int code = none && some ? kymo_value_add_string(none, attribute, "all") : CLI_FAILED;

	if (!code)
		code = request_for_path(l, "untrack", none);
	leave_part(l, len);
	if (code || !count_of(tracked, attribute))
		return code;
	code = copy_member(l, some, tracked, attribute);
	enter_part(l, attribute);
	if (!code)
		code = request_for_path(l, "track", some);
	leave_part(l, len);
	return code;
}

static int load_tracked(struct loader *l, struct json_object *session)
{
	struct json_object *tracked = member_of(session, "tracked");
	size_t len = enter_part(l, "tracked");
	int code = tracked ? check_members(l, tracked, tracked_members) : CLI_OK;

	for (const struct member *m = tracked_members; m->name && !code; m++)
		if (member_of(tracked, m->name))
			code = track_from_json(l, tracked, m->name);
	leave_part(l, len);
	return code;
}

static int load_rotation(struct loader *l, struct json_object *session)
{
	struct json_object *rotation = member_of(session, "rotation");
	_cleanup_value_ struct kymo_value *params = new_params(l, NULL);
	size_t len = enter_part(l, "rotation");
	int code = params ? CLI_OK : CLI_FAILED;

	if (!code && rotation)
		code = check_members(l, rotation, rotation_members);
	if (!code)
		code = copy_sent(l, params, rotation, rotation_members);
	if (!code && rotation && json_object_object_length(rotation))
		code = request_for_path(l, "enable-rotation", params);
	leave_part(l, len);
	return code;
}

static int add_trigger(struct loader *l, struct json_object *trigger)
{
	_cleanup_value_ struct kymo_value *params = new_params(l, NULL);
	int code = check_members(l, trigger, trigger_members);

	if (!code && (!*string_of(trigger, "when") || !*string_of(trigger, "do")))
		code = fail_at(l, "failed", "a trigger needs 'when' and 'do'");
	if (!code)
		code = params ? put_as(l, params, trigger, "name", "trigger") : CLI_FAILED;
	if (!code)
		code = copy_sent(l, params, trigger, trigger_members);
	return code ? code : request_for_path(l, "add-trigger", params);
}

static int load_triggers(struct loader *l, struct json_object *session)
{
	struct json_object *triggers = member_of(session, "triggers");
	int code = CLI_OK;

	for (size_t i = 0; i < count_of(session, "triggers") && !code; i++) {
		size_t len = enter_element(l, "triggers", i);

		code = add_trigger(l, json_object_array_get_idx(triggers, i));
		leave_part(l, len);
	}
	return code;
}

/*
 * "*" in the path means the date and time. A path of the option may be relative to the current
 * directory; one of a file may not: a service reads such files, too.
 */
static int choose_output(struct loader *l, struct json_object *session, char *output)
{
	const char *path = string_of(session, "output"), *star;
	char date[32], absolute[PATH_MAX];
	int n;

	if (!l->options->output && member_of(session, "output") && !*path) {
		output[0] = '\0'; /* nothing is written */
		return CLI_OK;
	}
	if (l->options->output) {
		n = cli_absolute_path(absolute, sizeof(absolute), l->options->output);
		if (n < 0)
			return cli_fail(l->cli, "failed", "--output=%s: %s", l->options->output,
				strerror(-n));
		path = absolute;
	}
	if (!*path)
		return cli_choose_output(l->cli, l->session, false, output);
	star = strchr(path, '*');
	cli_format_date(date, sizeof(date));
	n = snprintf(output, PATH_MAX, "%.*s%s%s", (int)(star ? star - path : (int)strlen(path)),
		path, star ? date : "", star ? star + 1 : "");
	return n < PATH_MAX ? CLI_OK : fail_at(l, "failed", "the path of 'output' is too long");
}

static int create_from_json(struct loader *l, struct json_object *session)
{
	_cleanup_value_ struct kymo_value *params = new_params(l, NULL);
	char output[PATH_MAX];
	int code = params ? choose_output(l, session, output) : CLI_FAILED;

	if (!code)
		code = cli_params_added(l->cli, kymo_value_set_string(params, "output", output));
	if (!code)
		code = copy_sent(l, params, session, session_members);
	return code ? code : request_for_path(l, "create", params);
}

static int enter_state(struct loader *l, struct json_object *session)
{
	const char *state = string_of(session, "state");
	_cleanup_value_ struct kymo_value *params = new_params(l, NULL);
	size_t len = enter_part(l, "state");
	int code = params ? CLI_OK : CLI_FAILED;

	if (!code && *state && strcmp(state, "started") != 0 && strcmp(state, "paused") != 0 &&
		strcmp(state, "stopped") != 0)
		code = fail_at(l, "failed",
			"unknown state '%s': use \"started\", \"paused\" or \"stopped\"", state);
	if (!code && (!strcmp(state, "started") || !strcmp(state, "paused")))
		code = request_for_path(l, "start", params);
	if (!code && !strcmp(state, "paused"))
		code = request_for_path(l, "pause", params);
	leave_part(l, len);
	return code;
}

static int load_parts(struct loader *l, struct json_object *session)
{
	struct json_object *channels = member_of(session, "channels");
	int code = CLI_OK;

	for (size_t i = 0; i < count_of(session, "channels") && !code; i++) {
		size_t len = enter_element(l, "channels", i);

		code = load_channel(l, json_object_array_get_idx(channels, i));
		leave_part(l, len);
	}
	if (!code)
		code = load_tracked(l, session);
	if (!code)
		code = load_rotation(l, session);
	if (!code)
		code = load_triggers(l, session);
	return code ? code : enter_state(l, session);
}

static bool has_session(const struct kymo_value *sessions, const char *name)
{
	for (size_t i = 0; i < kymo_value_count(sessions); i++)
		if (!strcmp(name,
			    kymo_value_string(kymo_value_get(kymo_value_at(sessions, i), "name"))))
			return true;
	return false;
}

/* Returns a failure after a report. */
static int find_session(struct cli *cli, struct kymo_ctl *ctl, const char *name, bool *ret_exists)
{
	_cleanup_value_ struct kymo_value *all = NULL;
	int code = cli_call(cli, ctl, "list", NULL, &all);

	*ret_exists = has_session(kymo_value_get(all, "sessions"), name);
	return code;
}

int profile_destroy_old(struct cli *cli, struct kymo_ctl *ctl, const char *name)
{
	_cleanup_value_ struct kymo_value *params = cli_params_new(cli), *reply = NULL;
	bool exists = false;
	int code = params ? find_session(cli, ctl, name, &exists) : CLI_FAILED;

	if (code || !exists)
		return code;
	kymo_value_set_string(params, "session", name);
	return cli_call(cli, ctl, "destroy", params, &reply);
}

static int load_session(struct loader *l, struct json_object *session, struct kymo_value *loaded)
{
	_cleanup_value_ struct kymo_value *params = NULL;
	bool exists = false;
	int code = check_members(l, session, session_members);

	if (!code)
		l->session = l->options->name ? l->options->name : string_of(session, "name");
	if (!code && !*l->session)
		code = fail_at(l, "failed", "a session needs a 'name'");
	if (!code && l->options->missing)
		code = find_session(l->cli, l->ctl, l->session, &exists);
	if (!code && l->options->force)
		code = profile_destroy_old(l->cli, l->ctl, l->session);
	if (code || exists)
		return code;
	code = create_from_json(l, session);
	if (code)
		return code;
	code = load_parts(l, session);
	if (code) {
		_cleanup_value_ struct kymo_value *reply = NULL;

		params = new_params(l, NULL);
		if (params)
			cli_try(l->cli, l->ctl, "destroy", params, &reply);
		return code;
	}
	kymo_value_add_string(loaded, "sessions", l->session);
	if (!l->cli->json)
		printf("session '%s' loaded%s\n", cli_safe(l->cli, l->session),
			!strcmp(string_of(session, "state"), "started") ? ", and started" : "");
	return CLI_OK;
}

static int load_sessions(struct loader *l, struct json_object *profile, struct kymo_value *loaded)
{
	struct json_object *sessions = member_of(profile, "sessions");
	size_t n;
	int code = check_members(l, profile, file_members);

	if (!code && json_object_get_int64(member_of(profile, "version")) != PROFILE_VERSION)
		code = fail_at(l, "unsupported", "'version' must be %d", PROFILE_VERSION);
	n = code ? 0 : count_of(profile, "sessions");
	if (n > 1 && (l->options->name || l->options->output))
		code = fail_at(l, "failed",
			"there are several sessions: they keep their names and outputs");
	for (size_t i = 0; i < n && !code; i++) {
		size_t len = enter_element(l, "sessions", i);

		code = load_session(l, json_object_array_get_idx(sessions, i), loaded);
		leave_part(l, len);
	}
	return code;
}

/* Returns NULL after a report. */
static struct json_object *parse_profile(struct cli *cli, const char *path, const char *text)
{
	struct json_tokener *t = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *o;
	unsigned line = 1;

	if (!t) {
		cli_fail(cli, "failed", "no memory");
		return NULL;
	}
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(t, text, (int)strlen(text) + 1);
	if (!o) {
		for (size_t i = 0; i < json_tokener_get_parse_end(t) && text[i]; i++)
			line += text[i] == '\n';
		cli_fail(cli, "failed", "%s:%u: this is no JSON: %s", path, line,
			json_tokener_error_desc(json_tokener_get_error(t)));
	}
	json_tokener_free(t);
	return o;
}

int profile_load(struct cli *cli, struct kymo_ctl **ctl, const char *path, const char *text,
	const struct profile_options *options, struct kymo_value *loaded)
{
	struct loader l = {.cli = cli, .file = path, .text = text, .options = options};
	struct json_object *profile = parse_profile(cli, path, text);
	int code = profile ? CLI_OK : CLI_FAILED;

	if (!code && !*ctl)
		code = cli_connect_or_start(cli, ctl);
	l.ctl = *ctl;
	if (!code)
		code = load_sessions(&l, profile, loaded);
	json_object_put(profile);
	return code;
}
