/* SPDX-License-Identifier: MIT */
#include "cli/lttng-profile.h"

#include <limits.h>

#include "cli/agents.h"
#include "cli/daemon.h"
#include "cli/locate.h"
#include "cli/params.h"
#include "cli/track.h"

struct profile {
	struct cli *cli;
	struct kymo_ctl *ctl;
	const char *session;
};

/* Returns the parameters of a request to the session, or NULL after a report. */
static struct kymo_value *new_params(const struct profile *p, const char *channel)
{
	struct kymo_value *params = cli_params_new(p->cli);

	if (params)
		kymo_value_set_string(params, "session", p->session);
	if (params && channel)
		kymo_value_set_string(params, "channel", channel);
	return params;
}

static int call_daemon(
	const struct profile *p, const char *command, const struct kymo_value *params)
{
	_cleanup_value_ struct kymo_value *reply = NULL;

	return cli_call(p->cli, p->ctl, command, params, &reply);
}

static bool is_true(const struct xml *e, const char *name)
{
	const char *text = xml_text(e, name);

	return !strcmp(text, "true") || !strcmp(text, "1");
}

static bool is_zero(const char *text)
{
	return strspn(text, "0") == strlen(text);
}

static bool is_number(const char *text)
{
	return strspn(text, "0123456789") == strlen(text);
}

/* --- the session --- */

/* The place of the trace, or the first place of snapshots if the session has such. */
static const struct xml *destination(const struct xml *session)
{
	const struct xml *output = xml_child(session, "output");
	const struct xml *snapshots = xml_child(output, "snapshot_outputs");

	if (snapshots)
		output = xml_child(snapshots, "output");
	return xml_child(xml_child(output, "consumer_output"), "destination");
}

/* LTTng's own directory of traces is not the place of new ones if the profile names none. */
static int choose_output(const struct profile *p, const struct xml *session, char *output)
{
	const char *path = xml_text(destination(session), "path");

	if (!*path || cli_has(p->cli, "output"))
		return cli_choose_output(p->cli, p->session, false, output);
	if (*path != '/' || strlen(path) >= PATH_MAX)
		return cli_fail(p->cli, "failed",
			"the profile's output '%s' is no absolute path: give --output=DIR", path);
	strcpy(output, path);
	return CLI_OK;
}

static int create_from_xml(const struct profile *p, const struct xml *session)
{
	_cleanup_value_ struct kymo_value *params = new_params(p, NULL);
	const char *shm_path = xml_text(session, "shared_memory_path");
	char path[PATH_MAX];
	int code = params ? choose_output(p, session, path) : CLI_FAILED;

	if (code)
		return code;
	kymo_value_set_string(params, "output", path);
	if (xml_child(xml_child(session, "output"), "snapshot_outputs") ||
		is_true(xml_child(session, "attributes"), "snapshot_mode"))
		kymo_value_set_bool(params, "snapshot", true);
	if (*shm_path) {
		cli_make_dirs(shm_path); /* LTTng removes it; if it fails, the daemon says so */
		kymo_value_set_string(params, "shm_path", shm_path);
	}
	return call_daemon(p, "create", params);
}

static int enable_rotation(const struct profile *p, const struct xml *session)
{
	const struct xml *s = xml_child(xml_child(session, "attributes"), "rotation_schedules");
	const char *time = xml_text(xml_child(s, "periodic"), "time_us");
	const char *size = xml_text(xml_child(s, "size_threshold"), "bytes");
	_cleanup_value_ struct kymo_value *params = new_params(p, NULL);

	if (!params)
		return CLI_FAILED;
	if (!*time && !*size)
		return CLI_OK;
	if (*time)
		kymo_value_set_u64(params, "timer", strtoull(time, NULL, 10));
	if (*size)
		kymo_value_set_u64(params, "size", strtoull(size, NULL, 10));
	return call_daemon(p, "enable-rotation", params);
}

/* --- a channel --- */

static int put_numbers(
	const struct profile *p, const struct xml *channel, struct kymo_value *params)
{
	static const char *const options[][2] = {
		{"subbuffer_size", "subbuf-size"},
		{"subbuffer_count", "num-subbuf"},
		{"switch_timer_interval", "switch-timer"},
		{"read_timer_interval", "read-timer"},
		{"blocking_timeout", "blocking-timeout"},
		{"tracefile_size", "tracefile-size"},
		{"tracefile_count", "tracefile-count"},
	};
	int code = CLI_OK;

	for (size_t i = 0; i < KY_ARRAY_SIZE(options) && !code; i++) {
		const char *value = xml_text(channel, options[i][0]);

		if (is_zero(value)) /* the default of all of these */
			continue;
		if (!strcmp(options[i][0], "blocking_timeout") && !strcmp(value, "-1"))
			value = "inf";
		else if (!is_number(value))
			return cli_fail(p->cli, "refused", "channel '%s': %s is '%s', not a number",
				cli_safe(p->cli, xml_text(channel, "name")), options[i][0],
				cli_safe(p->cli, value));
		code = cli_params_option(p->cli, params, options[i][1], value);
	}
	return code;
}

static int enable_channel(
	const struct profile *p, const struct xml *domain, const struct xml *channel)
{
	_cleanup_value_ struct kymo_value *params = new_params(p, xml_text(channel, "name"));
	int code = params ? put_numbers(p, channel, params) : CLI_FAILED;

	if (code)
		return code;
	if (!strcmp(xml_text(channel, "overwrite_mode"), "OVERWRITE"))
		kymo_value_set_string(params, "mode", "overwrite");
	if (!strcmp(xml_text(domain, "buffer_type"), "PER_PID"))
		kymo_value_set_string(params, "buffers", "process");
	return call_daemon(p, "enable-channel", params);
}

static void put_lower(struct ky_buf *to, const char *text, char from, char by)
{
	for (; *text; text++) {
		const char c = *text == from		      ? by
			       : *text >= 'A' && *text <= 'Z' ? *text | 0x20
							      : *text;

		ky_buf_append(to, &c, 1);
	}
}

/* VPID, <perf> and <app>: as 'kymo add-context' names them. */
static void put_context(struct ky_buf *to, const struct xml *context)
{
	static const char prefix[] = "perf_thread_";
	const struct xml *app = xml_child(context, "app");
	const char *counter = xml_text(xml_child(context, "perf"), "name");

	if (app) {
		ky_buf_printf(to, "$app.%s:%s", xml_text(app, "provider_name"),
			xml_text(app, "ctx_name"));
	} else if (*counter) {
		ky_buf_puts(to, "perf:thread:");
		put_lower(to,
			counter + (strncmp(counter, prefix, strlen(prefix)) ? 0 : strlen(prefix)),
			'_', '-');
	} else {
		put_lower(to, xml_text(context, "type"), 0, 0);
	}
	ky_buf_append(to, "", 1);
}

static int add_contexts(const struct profile *p, const struct xml *channel)
{
	const struct xml *c = xml_child(xml_child(channel, "contexts"), "context");
	_cleanup_value_ struct kymo_value *params = new_params(p, xml_text(channel, "name"));

	if (!params)
		return CLI_FAILED;
	if (!c)
		return CLI_OK;
	for (; c; c = xml_next(c)) {
		struct ky_buf name = {0};

		put_context(&name, c);
		if (!name.error)
			kymo_value_add_string(params, "contexts", name.data);
		ky_buf_deinit(&name);
	}
	return call_daemon(p, "add-context", params);
}

static int put_level(const struct profile *p, const struct xml *event, struct kymo_value *params)
{
	const char *type = xml_text(event, "loglevel_type"), *level = xml_text(event, "loglevel");

	if (strcmp(type, "RANGE") != 0 && strcmp(type, "SINGLE") != 0)
		return CLI_OK;
	return cli_params_added(p->cli,
		kymo_value_set_u64(params, !strcmp(type, "RANGE") ? "loglevel" : "loglevel_only",
			strtoull(level, NULL, 10)));
}

static int put_exclusions(
	const struct profile *p, const struct xml *event, struct kymo_value *params)
{
	const struct xml *x = xml_child(xml_child(event, "exclusions"), "exclusion");
	int r = 0;

	for (; x && !r; x = xml_next(x))
		r = kymo_value_add_string(params, "exclude", x->text);
	return cli_params_added(p->cli, r);
}

/*
 * The filter of an agent's event has its level, and the logger behind the user's filter; here the
 * logger comes first, as in rules of 'kymo enable-event'.
 */
static void put_logger(const struct xml *event, struct kymo_value *params)
{
	const char *filter = xml_text(event, "filter"), *name = xml_text(event, "name");
	struct ky_buf text = {0};

	if (strcmp(name, "*") != 0)
		agents_put_logger(&text, name);
	if (*filter)
		ky_buf_printf(&text, "%s(%s)", text.len ? " && " : "", filter);
	if (text.len && !text.error)
		kymo_value_set_string(params, "filter", text.data);
	ky_buf_deinit(&text);
}

static struct kymo_value *rule_params(const struct profile *p, const struct cli_agent_domain *agent,
	const char *channel, const struct xml *event)
{
	struct kymo_value *params = new_params(p, channel);
	const char *filter = xml_text(event, "filter");

	if (!params)
		return NULL;
	kymo_value_add_string(params, "patterns", agent ? agent->event : xml_text(event, "name"));
	if (agent)
		put_logger(event, params);
	else if (*filter)
		kymo_value_set_string(params, "filter", filter);
	return params;
}

static int enable_event(const struct profile *p, const struct cli_agent_domain *agent,
	const char *channel, const struct xml *event)
{
	_cleanup_value_ struct kymo_value *params = rule_params(p, agent, channel, event);
	int code = params ? put_exclusions(p, event, params) : CLI_FAILED;

	if (!code && !agent)
		code = put_level(p, event, params);
	return code ? code : call_daemon(p, "enable-event", params);
}

/* It is enabled first, because a rule has to exist. */
static int load_disabled_event(const struct profile *p, const struct cli_agent_domain *agent,
	const char *channel, const struct xml *event)
{
	_cleanup_value_ struct kymo_value *params = rule_params(p, agent, channel, event);
	int code = enable_event(p, agent, channel, event);

	if (code)
		return code;
	return params ? call_daemon(p, "disable-event", params) : CLI_FAILED;
}

/*
 * disable-event may disable several rules of one pattern, so those that are not enabled come first.
 */
static int load_events(
	const struct profile *p, const struct cli_agent_domain *agent, const struct xml *channel)
{
	const struct xml *first = xml_child(xml_child(channel, "events"), "event"), *e;
	const char *name = xml_text(channel, "name");
	int code = CLI_OK;

	for (e = first; e && !code; e = xml_next(e)) {
		if (!is_true(e, "enabled"))
			code = load_disabled_event(p, agent, name, e);
	}
	for (e = first; e && !code; e = xml_next(e)) {
		if (is_true(e, "enabled"))
			code = enable_event(p, agent, name, e);
	}
	return code;
}

static int load_channel(const struct profile *p, const struct cli_agent_domain *agent,
	const struct xml *domain, const struct xml *channel)
{
	_cleanup_value_ struct kymo_value *params = new_params(p, xml_text(channel, "name"));
	int code;

	if (agent && !xml_child(xml_child(channel, "events"), "event"))
		return CLI_OK; /* LTTng makes these channels by itself */
	code = params ? enable_channel(p, domain, channel) : CLI_FAILED;
	if (!code)
		code = add_contexts(p, channel);
	if (!code)
		code = load_events(p, agent, channel);
	return code || is_true(channel, "enabled") ? code
						   : call_daemon(p, "disable-channel", params);
}

/* --- a domain --- */

/*
 * Without the element, everything is tracked. Otherwise none is tracked first, because to track a
 * value adds it to those that are tracked.
 */
static int track_from_xml(
	const struct profile *p, const struct xml *trackers, const char *attribute)
{
	_cleanup_value_ struct kymo_value *none = new_params(p, NULL), *some = new_params(p, NULL);
	const struct xml *tracker, *first, *v;
	char name[64];
	int code = none && some ? kymo_value_add_string(none, attribute, "all") : CLI_FAILED;

	snprintf(name, sizeof(name), "%s_process_attr_tracker", attribute);
	tracker = xml_child(trackers, name);
	first = xml_child(xml_child(tracker, "process_attr_values"), attribute);
	if (!tracker || code)
		return code;
	code = call_daemon(p, "untrack", none);
	for (v = first; v && !code; v = xml_next(v))
		code = track_add_value(
			p->cli, some, attribute, xml_text(v, xml_child(v, "name") ? "name" : "id"));
	return code || !first ? code : call_daemon(p, "track", some);
}

static int load_domain(const struct profile *p, const struct xml *domain)
{
	const struct xml *channel = xml_child(xml_child(domain, "channels"), "channel");
	const struct xml *trackers = xml_child(domain, "process_attr_trackers");
	const char *type = xml_text(domain, "type");
	const struct cli_agent_domain *agent = agents_named(type);
	int code = CLI_OK;

	if (!strcmp(type, "KERNEL")) {
		cli_warn(p->cli, "session '%s': its events of the kernel are left out",
			cli_safe(p->cli, p->session));
		return CLI_OK;
	}
	if (!agent && strcmp(type, "UST") != 0)
		return cli_fail(p->cli, "unsupported", "the profile has an unknown domain, '%s'",
			cli_safe(p->cli, type));
	for (; channel && !code; channel = xml_next(channel))
		code = load_channel(p, agent, domain, channel);
	if (!code)
		code = track_from_xml(p, trackers, "vpid");
	if (!code)
		code = track_from_xml(p, trackers, "vuid");
	return code ? code : track_from_xml(p, trackers, "vgid");
}

static int load_parts(const struct profile *p, const struct xml *session)
{
	const struct xml *domain = xml_child(xml_child(session, "domains"), "domain");
	_cleanup_value_ struct kymo_value *params = new_params(p, NULL);
	int code = params ? CLI_OK : CLI_FAILED;

	for (; domain && !code; domain = xml_next(domain))
		code = load_domain(p, domain);
	if (!code)
		code = enable_rotation(p, session);
	return code || !is_true(session, "started") ? code : call_daemon(p, "start", params);
}

const struct xml *lttng_profile_first(const struct xml *root)
{
	return strcmp(root->name, "sessions") != 0 ? NULL : xml_child(root, "session");
}

int lttng_profile_load(
	struct cli *cli, struct kymo_ctl *ctl, const struct xml *session, const char *name)
{
	const struct profile p = {cli, ctl, name};
	_cleanup_value_ struct kymo_value *params = new_params(&p, NULL);
	int code;

	if (!params)
		return CLI_FAILED;
	if (xml_child(destination(session), "net_output") && !cli_has(cli, "output"))
		return cli_fail(cli, "unsupported",
			"session '%s' sends its trace over a network: give --output=DIR, a directory of this host, and see 'kymo ship' and 'kymo live'",
			cli_safe(cli, name));
	code = create_from_xml(&p, session);
	if (code)
		return code;
	code = load_parts(&p, session);
	if (code)
		call_daemon(&p, "destroy", params);
	return code;
}
