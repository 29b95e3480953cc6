/* SPDX-License-Identifier: MIT */
/*
 * What the control commands do: one function each, and the table (control.h).
 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>

#include "base/glob.h"
#include "proto/app.h"
#include "sessiond/app.h"
#include "sessiond/context.h"
#include "sessiond/control.h"
#include "sessiond/daemon.h"
#include "sessiond/explain.h"
#include "sessiond/json.h"
#include "sessiond/journal.h"
#include "sessiond/option.h"
#include "sessiond/report.h"
#include "sessiond/snapshot.h"

static void add(struct request *r, const char *name, struct json_object *value)
{
	json_add(r->reply, name, value);
}

/* Appends to a list in the reply, made when it is not there. */
static void add_to(struct request *r, const char *list, struct json_object *value)
{
	struct json_object *array = NULL;

	if (!json_object_object_get_ex(r->reply, list, &array)) {
		add(r, list, json_object_new_array());
		json_object_object_get_ex(r->reply, list, &array);
	}
	json_append(array, value);
}

static void note(struct request *r, const char *fmt, ...) KY_PRINTF(2, 3);

/* What the caller should know although the command succeeds. */
static void note(struct request *r, const char *fmt, ...)
{
	char text[REQUEST_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_to(r, "notes", json_object_new_string(text));
}

static void run_hello(struct request *r)
{
	add(r, "version", json_object_new_string(KYMO_VERSION));
	add(r, "pid", json_object_new_int(getpid()));
	add(r, "rundir", json_object_new_string(r->daemon->run.path));
	add(r, "protocol", json_object_new_int(KY_PROTO_VERSION));
	request_finish(r);
}

/* --- sessions and their steps --- */

static void note_failure(struct request *r, int error, const char *session, const char *message)
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

static void step_done(struct session_waiter *w, struct session *s, int error, const char *message)
{
	struct request_step *step = ky_container_of(w, struct request_step, waiter);
	struct request *r = step->request;

	ky_list_remove(&step->node);
	free(step);
	if (error)
		note_failure(r, error, s->name, message);
	else if (r->command->scope == SCOPE_NONE)
		add(r, "session", report_session(s));
	else
		add_to(r, "sessions", report_session(s));
	if (!error && r->command->scope == SCOPE_NONE)
		request_select(r, s);
	if (ky_list_empty(&r->steps))
		request_finish(r);
}

static struct request_step *step_new(struct request *r)
{
	struct request_step *step = calloc(1, sizeof(*step));

	if (!step)
		return NULL;
	step->waiter.done = step_done;
	step->request = r;
	ky_list_append(&r->steps, &step->node);
	return step;
}

static void step_free(struct request_step *step)
{
	ky_list_remove(&step->node);
	free(step);
}

static const char *why_no_step(int error)
{
	switch (error) {
	case -EBUSY:
		return "another command is still at work on it: try again";
	case -ENOTCONN:
		return "it is stopped, and only a recording can be paused or resumed: 'kymo start' begins to record";
	default:
		return strerror(-error);
	}
}

/* As it should be, then; or not concerned, when all are meant. */
static bool is_fine(const struct request *r, int ret)
{
	return ret == -EALREADY || (ret == -ENOTCONN && !r->session);
}

/* no_wait: nobody is told of the step's end, and the session is reported as it is now. */
static void begin_step(struct request *r, struct session *s,
	int (*begin)(struct session *s, struct session_waiter *waiter))
{
	bool no_wait = request_bool(r, "no_wait");
	struct request_step *step = no_wait ? NULL : step_new(r);
	int ret;

	if (step)
		step->session = s;
	ret = step || no_wait ? begin(s, step ? &step->waiter : NULL) : -ENOMEM;
	if (!ret && step)
		return;
	if (step)
		step_free(step);
	if (!ret || is_fine(r, ret))
		add_to(r, "sessions", report_session(s));
	else
		note_failure(r, ret, s->name, why_no_step(ret));
}

/* One session, or all of the caller's; answered when each has finished its step. */
static void begin_steps(
	struct request *r, int (*begin)(struct session *s, struct session_waiter *waiter))
{
	struct session *s, *tmp;

	add(r, "sessions", json_object_new_array());
	if (r->session)
		begin_step(r, r->session, begin);
	else
		ky_list_foreach_safe (s, tmp, &r->daemon->sessions, node)
			if (r->peer.uid == s->uid)
				begin_step(r, s, begin);
	if (ky_list_empty(&r->steps))
		request_finish(r);
}

static void run_start(struct request *r)
{
	begin_steps(r, session_start);
}

static void run_stop(struct request *r)
{
	begin_steps(r, session_stop);
}

static void run_pause(struct request *r)
{
	begin_steps(r, session_pause);
}

static void run_resume(struct request *r)
{
	begin_steps(r, session_resume);
}

static void run_destroy(struct request *r)
{
	begin_steps(r, session_destroy);
}

static const char *default_name(char *buf, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(buf, size, "auto-%Y%m%d-%H%M%S", &tm);
	return buf;
}

/* The session that writes to this directory already, by whatever name of it. */
static struct session *find_output(struct daemon *d, const char *output)
{
	struct stat mine, theirs;
	bool exists = *output && stat(output, &mine) == 0;
	struct session *s;

	ky_list_foreach (s, &d->sessions, node)
		if (*output && (!strcmp(s->output, output) ||
				       (exists && *s->output && stat(s->output, &theirs) == 0 &&
					       mine.st_dev == theirs.st_dev &&
					       mine.st_ino == theirs.st_ino)))
			return s;
	return NULL;
}

static bool may_create(struct request *r, const char *name, const char *output)
{
	if (!name_valid(name))
		request_refuse(r, "usage",
			"'%s' cannot name a session: use up to 128 letters, digits, '.', '_' and '-', and no '.' first",
			name);
	else if (*output && *output != '/')
		request_refuse(r, "usage", "output '%s' is not an absolute path", output);
	else if (find_output(r->daemon, output))
		request_refuse(r, "exists",
			"session '%s' writes to '%s' already: choose another output directory",
			find_output(r->daemon, output)->name, output);
	else if (session_find(r->daemon, name))
		request_refuse(r, "exists",
			"session '%s' exists already: choose another name or 'kymo destroy %s'",
			name, name);
	else if (r->daemon->n_sessions >= SESSIONS_MAX)
		request_refuse(
			r, "failed", "there are %u sessions already: destroy some", SESSIONS_MAX);
	else
		return true;
	return false;
}

static void create(struct request *r)
{
	struct daemon *d = r->daemon;
	const char *name = request_string(r, "session"), *output = request_string(r, "output");
	/* Only root's daemon can run consumers as somebody else. */
	uid_t uid = d->uid == 0 ? r->peer.uid : d->uid;
	struct request_step *step;
	char buf[64];
	int ret;

	name = name ? name : default_name(buf, sizeof(buf));
	output = output ? output : "";
	if (!may_create(r, name, output))
		return;
	if (*d->collector.trouble)
		note(r, "the collector of system state %s: the session does without it until it is back (the daemon's log has more)",
			d->collector.trouble);
	step = d->replaying ? NULL : step_new(r);
	ret = step || d->replaying ? session_new(d, name, output, request_bool(r, "snapshot"), uid,
					     r->peer.gid, step ? &step->waiter : NULL)
				   : -ENOMEM;
	if (!ret && d->replaying) {
		request_finish(r);
		return;
	}
	if (!ret) {
		step->session = session_find(d, name);
		journal_begin(step->session, r->params);
		return;
	}
	if (step)
		step_free(step);
	request_refuse(
		r, "failed", "cannot start a consumer for session '%s': %s", name, strerror(-ret));
}

/* The collector is ready, or has failed. */
static void create_held(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	if (b->timed_out)
		note(r, "the collector of system state does not answer: the session does without it");
	create(r);
}

static void run_create(struct request *r)
{
	struct collector *c = &r->daemon->collector;

	barrier_init(&r->barrier, &r->daemon->loop, create_held);
	if (!r->daemon->replaying && collector_await(c, &r->barrier))
		barrier_arm(&r->barrier, COLLECTOR_ANSWER_NS);
	else
		create(r);
}

static void run_set_session(struct request *r)
{
	if (!request_string(r, "session")) {
		request_refuse(r, "usage", "'set-session' needs the parameter 'session'");
		return;
	}
	request_select(r, r->session);
	add(r, "session", report_session(r->session));
	request_finish(r);
}

static void run_list(struct request *r)
{
	const struct session *s;

	add(r, "sessions", json_object_new_array());
	ky_list_foreach (s, &r->daemon->sessions, node)
		if (request_may_touch(r, s))
			add_to(r, "sessions", report_session_brief(s));
	request_finish(r);
}

/* --- channels --- */

/*
 * The options that the request gives. False when it was refused. Sizes are rounded, which is noted.
 */
static bool take_options(struct request *r, struct option_values *ret_values)
{
	memset(ret_values, 0, sizeof(*ret_values));
	json_object_object_foreach(r->params, name, value)
	{
		const struct option *o = option_find(name);
		struct ky_buf allowed = {0};
		int ret = o ? option_take(ret_values, o, value) : 0;

		if (ret)
			option_describe(&allowed, o);
		if (ret < 0)
			request_refuse(r, "usage", "'%s' is no %s: it is %s",
				json_object_get_string(value), o->key,
				allowed.data ? allowed.data : "");
		else if (ret)
			note(r, "%s %s became %" PRIu64 ": it is %s", name,
				json_object_get_string(value),
				ret_values->value[o - channel_options],
				allowed.data ? allowed.data : "");
		ky_buf_deinit(&allowed);
		if (ret < 0)
			return false;
	}
	return true;
}

/* False, and refused, when the channel cannot have these options. */
static bool may_have_options(
	struct request *r, const struct channel *c, const struct option_values *values)
{
	struct ky_buf why = {0};
	int ret = options_check(c, values, &why);

	if (ret < 0)
		request_refuse(r, "usage", "%s", why.data ? why.data : strerror(-ret));
	ky_buf_deinit(&why);
	return !ret;
}

/* As the files of some channels have it behind the channel's name. */
static bool has_files_ending(const char *name)
{
	static const char digits[] = "0123456789";
	const char *p = strrchr(name, '-');
	size_t n = p ? strspn(p + 1, digits) : 0;

	if (p && !strcmp(p, "-thread"))
		return true;
	if (!n || p[1 + n])
		return false;
	while (p > name && strchr(digits, p[-1]))
		p--;
	return p - name >= 2 && p[-1] == 'p' && p[-2] == '-' && *p != '-';
}

/* The channel of this name, made when it is not there; NULL when the request was refused. */
static struct channel *make_channel(struct request *r, const char *name)
{
	static const struct option_values none;
	struct session *s = r->session;
	struct channel *c;

	if (!name_valid(name) || has_files_ending(name)) {
		request_refuse(r, "usage",
			"'%s' cannot name a channel: use up to 128 letters, digits, '.', '_' and '-', no '.' first, no '-thread' and nothing like '-p1-2' last",
			name);
		return NULL;
	}
	if (s->n_channels >= CHANNELS_MAX) {
		request_refuse(r, "failed", "session '%s' has %u channels, which is the most",
			s->name, CHANNELS_MAX);
		return NULL;
	}
	c = channel_new(s, name);
	if (!c)
		request_refuse(r, "failed", "the session daemon has no memory left");
	else if (!may_have_options(r, c, &none))
		c = channel_free(c);
	return c;
}

static void answer_rules(struct barrier *b);

/* Programs are asked what of theirs the channel records now; answered when they have said it. */
static void query_and_answer(struct request *r, struct channel *c)
{
	barrier_init(&r->barrier, &r->daemon->loop, answer_rules);
	apps_query_channel(c, &r->barrier);
	daemon_publish(r->daemon);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

static void reenable_channel(struct request *r, struct channel *c, bool has_options)
{
	if (c->enabled) {
		request_refuse(r, "exists", "channel '%s' exists already in session '%s'", c->name,
			r->session->name);
		return;
	}
	if (has_options) {
		request_refuse(r, "usage",
			"channel '%s' exists already, disabled: enable it without options; 'kymo set -c %s' changes them",
			c->name, c->name);
		return;
	}
	c->enabled = true;
	query_and_answer(r, c);
}

static bool gives(const struct option_values *values, const char *key)
{
	return values->given >> (option_find(key) - channel_options) & 1;
}

/* What the options bring about that may not have been meant. */
static void note_options(
	struct request *r, const struct channel *c, const struct option_values *values)
{
	if (gives(values, "mode") && c->overwrite && !c->session->snapshot)
		note(r, "channel '%s' is in overwrite mode: its events are not in the session's trace, only in snapshots ('kymo snapshot record')",
			c->name);
	if (gives(values, "pool-size") && c->buffers != BUFFERS_THREAD)
		note(r, "channel '%s': a pool-size is for buffers of threads: make another channel with --buffers=thread",
			c->name);
	if (gives(values, "blocking-timeout") && c->blocking_timeout_us)
		note(r, "channel '%s': only programs that are started with KYMO_ALLOW_BLOCKING=1 in their environment wait for room; others discard",
			c->name);
}

static void run_enable_channel(struct request *r)
{
	const char *name = request_string(r, "channel");
	struct channel *c = channel_find(r->session, name);
	struct option_values values;

	if (!take_options(r, &values))
		return;
	if (c) {
		reenable_channel(r, c, values.given);
		return;
	}
	c = make_channel(r, name);
	if (!c)
		return;
	if (!may_have_options(r, c, &values)) {
		channel_free(c);
		return;
	}
	options_apply(c, &values);
	if (c->buffers == BUFFERS_THREAD && !gives(&values, "subbuf-size"))
		c->subbuf_size = THREAD_SUBBUF_SIZE;
	note_options(r, c, &values);
	add(r, "channel", report_channel(c));
	request_finish(r);
}

/* The name of a channel that `name` may have been meant to be, or NULL. */
static const char *channel_meant(const struct session *s, const char *name)
{
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (strcmp(c->name, name) && name_is_meant(name, c->name))
			return c->name;
	return NULL;
}

/* The named channel; NULL when the request was refused. */
static struct channel *find_channel(struct request *r)
{
	const char *name = request_string(r, "channel"), *near;
	struct channel *c;

	name = name ? name : DEFAULT_CHANNEL;
	c = channel_find(r->session, name);
	if (c)
		return c;
	near = channel_meant(r->session, name);
	request_refuse(r, "not-found", "session '%s' has no channel '%s'%s%s%s", r->session->name,
		name, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
	return NULL;
}

static void answer_disabled(struct barrier *b)
{
	request_finish(ky_container_of(b, struct request, barrier));
}

/* Answered when no program records any more what the channel does not want now. */
static void unmap_and_answer(struct request *r, struct channel *c)
{
	barrier_init(&r->barrier, &r->daemon->loop, answer_disabled);
	apps_unmap_unwanted(c, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

static void run_disable_channel(struct request *r)
{
	struct channel *c = find_channel(r);

	if (!c)
		return;
	c->enabled = false;
	add(r, "channel", report_channel(c));
	unmap_and_answer(r, c);
}

/* Changes what programs and consumer do, and tells them. */
static void set_options(struct request *r, struct channel *c, const struct option_values *values)
{
	for (const struct option *o = channel_options; o->key; o++)
		if (o->effect == OPTION_NEW_BUFFERS && option_is_changed(c, o, values) &&
			channel_has_buffers(c))
			note(r, "channel '%s': its buffers keep the %s that they have; it is for buffers that are made from now on, as programs of other users need them",
				c->name, o->key);
	options_apply(c, values);
	note_options(r, c, values);
	apps_tell_blocking(c);
	consumer_tell_timers(&c->session->consumer, c);
	add_to(r, "channels", report_channel(c));
}

/* Without options, tells what there are. One channel, or all. */
static void run_set(struct request *r)
{
	const struct channel *only = NULL;
	struct option_values values;
	struct channel *c;

	if (!take_options(r, &values))
		return;
	if (request_string(r, "channel") && !(only = find_channel(r)))
		return;
	if (ky_list_empty(&r->session->channels)) {
		request_refuse(r, "not-found",
			"session '%s' has no channel yet: 'kymo enable-channel NAME' makes one",
			r->session->name);
		return;
	}
	ky_list_foreach (c, &r->session->channels, node)
		if ((!only || c == only) && !may_have_options(r, c, &values))
			return;
	ky_list_foreach (c, &r->session->channels, node) {
		if (only && c != only)
			continue;
		if (values.given)
			set_options(r, c, &values);
		else
			add_to(r, "channels", report_options(c));
	}
	request_finish(r);
}

/* --- rules --- */

static bool patterns_valid(struct request *r, struct json_object *list, size_t max)
{
	size_t n = list ? json_object_array_length(list) : 0;

	if (n > max) {
		request_refuse(r, "usage", "more than %zu patterns at once", max);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const char *p = json_object_get_string(json_object_array_get_idx(list, i));

		if (ky_glob_valid(p) && strlen(p) <= RULE_PATTERN_MAX)
			continue;
		request_refuse(r, "usage",
			"'%s' is no pattern: it must not be empty, end in a backslash or have more than %d characters",
			p, RULE_PATTERN_MAX);
		return false;
	}
	return true;
}

static bool levels_valid(struct request *r, uint32_t *ret_type, uint32_t *ret_level)
{
	bool at_least = request_number(r, "loglevel", ret_level);
	bool only = request_number(r, "loglevel_only", ret_level);

	*ret_type = only ? KY_LEVEL_ONLY : at_least ? KY_LEVEL_AT_LEAST : KY_LEVEL_ALL;
	if (at_least && only)
		request_refuse(r, "usage", "either 'loglevel' or 'loglevel_only', not both");
	else if (*ret_type != KY_LEVEL_ALL && *ret_level > KYMO_DEBUG)
		request_refuse(r, "usage", "log level %u is unknown: they go from 0 to %d",
			*ret_level, KYMO_DEBUG);
	else
		return true;
	return false;
}

static struct rule *find_equal(const struct channel *c, const struct rule *like)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (rule_equal(r, like))
			return r;
	return NULL;
}

/* Adds a rule, or enables the one of the same text. */
static int enable_rule(struct channel *c, struct rule *rule)
{
	struct rule *same = find_equal(c, rule);

	if (same) {
		same->enabled = true;
		rule_free(rule);
		return 0;
	}
	if (c->n_rules >= RULES_MAX) {
		rule_free(rule);
		return -EDQUOT;
	}
	channel_add_rule(c, rule);
	return 0;
}

/* An event is recorded when any rule wants it: a narrower one does not narrow down an older one. */
static void note_variants(struct request *r, const struct channel *c, const struct rule *rule)
{
	const struct rule *other;

	ky_list_foreach (other, &c->rules, node)
		if (other->enabled && !strcmp(other->pattern, rule->pattern) &&
			!rule_equal(other, rule))
			note(r, "rule '%s' is enabled in another form too, and events that either of them wants are recorded: 'kymo disable-event --remove' and enable the one that you want",
				rule->pattern);
}

static int enable_rules(
	struct request *r, struct channel *c, uint32_t type, uint32_t level, struct filter *filter)
{
	struct json_object *patterns = request_list(r, "patterns");
	struct json_object *exclude = request_list(r, "exclude");
	const char *exclusions[RULE_EXCLUSIONS_MAX];
	uint32_t n = exclude ? (uint32_t)json_object_array_length(exclude) : 0;
	struct rule *rule;
	int ret = 0;

	for (uint32_t i = 0; i < n; i++)
		exclusions[i] = json_object_get_string(json_object_array_get_idx(exclude, i));
	for (size_t i = 0; !ret && i < json_object_array_length(patterns); i++) {
		rule = rule_new(json_object_get_string(json_object_array_get_idx(patterns, i)),
			exclusions, n, type, (int32_t)level);
		if (rule) {
			rule->filter = filter_ref(filter);
			note_variants(r, c, rule);
		}
		ret = rule ? enable_rule(c, rule) : -ENOMEM;
	}
	return ret;
}

/* The request's filter, a reference, or NULL when it has none; false when it is refused. */
static bool take_filter(struct request *r, struct filter **ret_filter)
{
	const char *text = request_string(r, "filter");
	struct ky_filter_error error;

	*ret_filter = text ? filter_new(text, &error) : NULL;
	if (!text || *ret_filter)
		return true;
	r->refusal.position = error.position;
	if (*error.text)
		request_refuse(r, "usage", "filter: %s", error.text);
	else
		request_refuse(r, "failed", "the session daemon has no memory left");
	return false;
}

static bool is_meant(struct request *r, const struct rule *rule)
{
	struct json_object *patterns = request_list(r, "patterns");

	for (size_t i = 0; i < json_object_array_length(patterns); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(patterns, i)),
			    rule->pattern))
			return true;
	return false;
}

/* How many events the rule matches, and what it does not record. */
static unsigned note_matches(struct request *r, const struct channel *c, const struct rule *rule)
{
	unsigned n = channel_count_matches(c, rule, true);
	struct ky_buf why = {0};

	if (rule->unfit) {
		note(r, "%s", rule->unfit);
	} else if (!n) {
		explain_rule(&why, c, rule);
		note(r, "%s", why.data ? why.data : rule->pattern);
	}
	ky_buf_deinit(&why);
	return n;
}

/* After the programs have answered: which rules there are, and how many events they match. */
static void answer_rules(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);
	const char *name = request_string(r, "channel");
	struct channel *c = r->session ? channel_find(r->session, name ? name : DEFAULT_CHANNEL)
				       : NULL;
	struct rule *rule;
	unsigned matched = 0;

	if (!c) {
		request_refuse(r, "not-found", "the session was destroyed meanwhile");
		return;
	}
	if (!request_list(r, "patterns")) {
		add(r, "channel", report_channel(c));
		request_finish(r);
		return;
	}
	add(r, "rules", json_object_new_array());
	ky_list_foreach (rule, &c->rules, node) {
		if (!is_meant(r, rule) || !rule->enabled)
			continue;
		add_to(r, "rules", report_rule(c, rule));
		matched += note_matches(r, c, rule);
	}
	add(r, "matched", json_object_new_int((int)matched));
	request_finish(r);
}

/* made: its name when the command has made it under a name that the caller gave; else NULL. */
static void note_channel(struct request *r, const struct channel *c, const char *made)
{
	const char *near = made ? channel_meant(r->session, made) : NULL;

	if (near)
		note(r, "channel '%s' was made: did you mean '%s'?", made, near);
	else if (made)
		note(r, "channel '%s' was made", made);
	else if (!c->enabled)
		note(r, "channel '%s' is disabled: it records nothing until 'kymo enable-channel %s'",
			c->name, c->name);
}

static void run_enable_event(struct request *r)
{
	const char *name = request_string(r, "channel");
	uint32_t type, level = 0;
	struct filter *filter;
	struct channel *c;
	int ret;

	if (!patterns_valid(r, request_list(r, "patterns"), RULES_MAX) ||
		!patterns_valid(r, request_list(r, "exclude"), RULE_EXCLUSIONS_MAX) ||
		!levels_valid(r, &type, &level) || !take_filter(r, &filter))
		return;
	c = channel_find(r->session, name ? name : DEFAULT_CHANNEL);
	if (!c)
		c = make_channel(r, name ? name : DEFAULT_CHANNEL);
	else
		name = NULL; /* was there */
	if (!c) {
		filter_unref(filter);
		return;
	}
	note_channel(r, c, name);
	ret = enable_rules(r, c, type, level, filter);
	filter_unref(filter);
	if (ret < 0) {
		request_refuse(r, "failed", "channel '%s': %s", c->name,
			ret == -EDQUOT ? "it has as many rules as a channel can have"
				       : strerror(-ret));
		return;
	}
	query_and_answer(r, c);
}

/* Refuses to disable what is not there. */
static void refuse_rules(struct request *r, const struct channel *c)
{
	const char *wanted = json_object_get_string(
		json_object_array_get_idx(request_list(r, "patterns"), 0));
	const struct rule *rule;

	ky_list_foreach (rule, &c->rules, node) {
		if (rule->enabled && name_is_meant(wanted, rule->pattern)) {
			request_refuse(r, "not-found",
				"channel '%s' has no enabled rule of that text: did you mean '%s'?",
				c->name, rule->pattern);
			return;
		}
	}
	request_refuse(r, "not-found",
		"channel '%s' has no enabled rule of that text: 'kymo status' shows them", c->name);
}

/* "*" stands for every rule. A rule that was disabled can still be removed. */
static void run_disable_event(struct request *r)
{
	struct channel *c = find_channel(r);
	const struct rule all = {.pattern = (char *)"*"};
	bool everything, removes;
	struct rule *rule, *tmp;
	unsigned n = 0;

	if (!c) /* refused: the request is over */
		return;
	removes = request_bool(r, "remove");
	everything = is_meant(r, &all);
	add(r, "rules", json_object_new_array());
	ky_list_foreach_safe (rule, tmp, &c->rules, node) {
		if ((!rule->enabled && !removes) || (!everything && !is_meant(r, rule)))
			continue;
		rule->enabled = false;
		add_to(r, "rules", report_rule(c, rule));
		if (removes)
			channel_remove_rule(c, rule);
		n++;
	}
	if (!n && !everything)
		refuse_rules(r, c);
	else
		unmap_and_answer(r, c);
}

/* --- contexts --- */

/* What the request asks for, one for each of its texts; NULL when it was refused. Owned by the caller. */
static struct ky_context *parse_contexts(struct request *r, size_t n)
{
	struct json_object *list = request_list(r, "contexts");
	struct ky_context *contexts;
	char why[REQUEST_ERROR_MAX];

	if (!n || n > KY_CTX_MAX) {
		request_refuse(r, "usage", "from 1 to %u contexts at once", KY_CTX_MAX);
		return NULL;
	}
	contexts = calloc(n, sizeof(*contexts));
	for (size_t i = 0; contexts && i < n; i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(list, i));

		if (context_parse(&contexts[i], text, why, sizeof(why)) < 0)
			request_refuse(r, "usage", "%s", why);
		else if (context_probe(&contexts[i], why, sizeof(why)) < 0)
			request_refuse(r, "unsupported", "%s", why);
		else
			continue;
		free(contexts);
		return NULL;
	}
	if (!contexts)
		request_refuse(r, "failed", "the session daemon has no memory left");
	return contexts;
}

/* False when one could not be added; those before it stay. */
static bool add_contexts(
	struct request *r, struct channel *c, const struct ky_context *contexts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int ret = channel_add_context(c, &contexts[i]);

		if (ret == -EEXIST)
			note(r, "channel '%s' records '%s' already", c->name,
				channel_context(c, contexts[i].name)->spec);
		else if (ret < 0)
			request_refuse(r, "failed", "channel '%s': '%s' is one too many: %s",
				c->name, contexts[i].spec,
				ret == -EDQUOT
					? "contexts are at most 64, 8 of them counters, and 4096 bytes together"
					: strerror(-ret));
		if (ret < 0 && ret != -EEXIST)
			return false;
	}
	return true;
}

/* Brings the contexts to the programs, now or at the next start; says which. */
static void apply_contexts(struct request *r, struct channel *c)
{
	unsigned n = channel_count_older(c);

	if (!r->session->started && n)
		apps_renew_channel(c);
	else if (n)
		note(r, "channel '%s': %u event%s that it knows already ha%s the new contexts from the next 'kymo start' on; others at once",
			c->name, n, n == 1 ? "" : "s", n == 1 ? "s" : "ve");
	add_to(r, "channels", report_channel(c));
}

/* To one channel, or to all; to a first one where there is none. */
static void run_add_context(struct request *r)
{
	size_t n = json_object_array_length(request_list(r, "contexts"));
	bool all = !request_string(r, "channel");
	struct ky_context *contexts = parse_contexts(r, n);
	struct channel *c = NULL;

	if (!contexts)
		return;
	if (all && ky_list_empty(&r->session->channels))
		c = make_channel(r, DEFAULT_CHANNEL);
	else if (!all)
		c = find_channel(r);
	if (!c && (!all || ky_list_empty(&r->session->channels))) {
		free(contexts);
		return;
	}
	ky_list_foreach (c, &r->session->channels, node) {
		if (!all && strcmp(c->name, request_string(r, "channel")))
			continue;
		if (!add_contexts(r, c, contexts, n)) {
			free(contexts);
			return;
		}
		apply_contexts(r, c);
	}
	free(contexts);
	request_finish(r);
}

/* --- trackers --- */

/* "all" is UINT64_MAX. False when it is neither that nor a number. */
static bool parse_tracked(const char *text, uint64_t *ret_value)
{
	char *end;

	*ret_value = UINT64_MAX;
	if (!strcmp(text, "all"))
		return true;
	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *ret_value <= UINT32_MAX;
}

static int change_tracker(struct tracker *t, uint64_t value, bool track)
{
	if (value == UINT64_MAX)
		tracker_reset(t, track);
	else if (track)
		return tracker_add(t, (uint32_t)value);
	else
		return tracker_remove(t, (uint32_t)value);
	return 0;
}

static void refuse_tracker(
	struct request *r, enum tracker_attribute which, const char *text, int error)
{
	const char *name = tracker_names[which], *session = r->session->name;

	if (error == -EINVAL)
		request_refuse(r, "usage",
			"session '%s' tracks every %s: 'kymo track --%s=..' narrows that down, 'kymo untrack --%s=all' leaves none",
			session, name, name, name);
	else if (error == -ENOENT)
		request_refuse(
			r, "not-found", "session '%s' does not track %s %s", session, name, text);
	else if (error == -EDQUOT)
		request_refuse(r, "failed",
			"session '%s' cannot track %s %s too: it has %u, and no more are possible",
			session, name, text, TRACKER_VALUES_MAX);
	else
		request_refuse(r, "failed", "session '%s' cannot track %s %s too: %s", session,
			name, text, strerror(-error));
}

/* All values of one attribute. False when one was refused: those before it are in effect. */
static bool change_attribute(struct request *r, enum tracker_attribute which, bool track)
{
	struct json_object *list = request_list(r, tracker_names[which]);

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(list, i));
		uint64_t value;
		int ret;

		if (!parse_tracked(text, &value)) {
			request_refuse(r, "usage", "'%s' is no %s: use a number, or 'all'", text,
				tracker_names[which]);
			return false;
		}
		ret = change_tracker(&r->session->trackers[which], value, track);
		if (ret < 0) {
			refuse_tracker(r, which, text, ret);
			return false;
		}
	}
	return true;
}

static void answer_tracked(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	if (r->session)
		add(r, "tracked", report_tracked(r->session));
	request_finish(r);
}

/* Answered when the programs that are not tracked record no more, and the others do. */
static void change_trackers(struct request *r, bool track)
{
	struct session *s = r->session;

	for (int i = 0; i < N_TRACKERS; i++) {
		if (!change_attribute(r, (enum tracker_attribute)i, track)) {
			apps_track(s, NULL);
			return;
		}
	}
	barrier_init(&r->barrier, &r->daemon->loop, answer_tracked);
	apps_track(s, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

static void run_track(struct request *r)
{
	change_trackers(r, true);
}

static void run_untrack(struct request *r)
{
	change_trackers(r, false);
}

/* --- snapshots --- */

void snapshot_done(struct snapshot *sn)
{
	struct request *r = sn->request;

	if (sn->error)
		note_failure(r, sn->error, sn->session->name, sn->message ? sn->message : "");
	else
		add(r, "snapshot", report_snapshot(sn));
	request_finish(r);
}

/*
 * Where it goes: below the session's directory if that has nothing but snapshots, else beside it, because whoever reads a
 * trace reads all that lies below. False when the request was refused.
 */
static bool place_snapshot(struct request *r, char *buf, size_t size)
{
	const struct session *s = r->session;
	const char *name = request_string(r, "name"), *output = request_string(r, "output");
	const struct session *other = output ? find_output(r->daemon, output) : NULL;
	size_t len = strlen(s->output);
	time_t now = time(NULL);
	struct tm tm;
	char date[32];

	while (len > 1 && s->output[len - 1] == '/')
		len--;
	localtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
	if (name && output)
		request_refuse(r, "usage", "either a name for the snapshot or 'output', not both");
	else if (name && !name_valid(name))
		request_refuse(r, "usage",
			"'%s' cannot name a snapshot: use up to 128 letters, digits, '.', '_' and '-', and no '.' first",
			name);
	else if (output && *output != '/')
		request_refuse(r, "usage", "output '%s' is not an absolute path", output);
	else if (other && (other != s || !s->snapshot))
		request_refuse(r, "exists",
			"session '%s' writes to '%s' already: choose another output directory",
			other->name, output);
	else if (!output && !len)
		request_refuse(r, "usage",
			"session '%s' writes no trace, so there is no place for a snapshot: give --output=DIR",
			s->name);
	else if (output)
		return snprintf(buf, size, "%s", output) > 0;
	else
		return snprintf(buf, size, "%.*s%c%s-%u-%s", (int)len, s->output,
			       s->snapshot ? '/' : '-', name ? name : "snapshot",
			       s->last_snapshot + 1, date) > 0;
	return false;
}

static void run_snapshot(struct request *r)
{
	char output[2 * PATH_MAX];
	int ret;

	if (!place_snapshot(r, output, sizeof(output)))
		return;
	ret = snapshot_new(r->session, output, request_bytes(r, "max_size"), r);
	if (ret == -EBUSY)
		request_refuse(r, "busy",
			"session '%s' has %u snapshots under way: try again when one has ended",
			r->session->name, SNAPSHOTS_MAX);
	else if (ret < 0)
		request_refuse(r, "failed", "cannot start a consumer for the snapshot: %s",
			strerror(-ret));
}

/* --- state --- */

static void answer_regenerated(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	if (b->timed_out)
		note(r, "some programs are still at it: what they have to tell may come later");
	request_finish(r);
}

static void run_regenerate(struct request *r)
{
	const char *what = request_string(r, "what");

	if (strcmp(what, "statedump")) {
		request_refuse(r, "usage", "'%s' is nothing to regenerate: 'statedump' is", what);
		return;
	}
	if (!r->session->started) {
		request_refuse(r, "usage",
			"session '%s' is not started: programs tell their state when it is ('kymo start')",
			r->session->name);
		return;
	}
	barrier_init(&r->barrier, &r->daemon->loop, answer_regenerated);
	apps_dump_state(r->session, true, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

/* --- chunks --- */

/* Without a trace of the session there are no chunks. */
static bool may_rotate(struct request *r)
{
	const struct session *s = r->session;

	if (s->snapshot)
		request_refuse(r, "unsupported",
			"session '%s' keeps events for snapshots only and writes no trace: 'kymo snapshot record' writes one",
			s->name);
	else if (!*s->output)
		request_refuse(r, "unsupported",
			"session '%s' writes no trace: there is nothing to rotate", s->name);
	else
		return true;
	return false;
}

static const char busy_rotating[] = "it is being rotated or cleared: try again";

static void add_rotation(struct request *r, const char *state, const char *path)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "session", json_object_new_string(r->session->name));
	json_add(o, "state", json_object_new_string(state));
	json_add(o, "path", json_object_new_string(path ? path : ""));
	add(r, "rotation", o);
}

static void answer_rotate(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);
	const struct session *s = r->session;

	if (!s)
		request_refuse(r, "not-found", "the session was destroyed meanwhile");
	else if (b->timed_out)
		request_refuse(r, "failed",
			"session '%s': its consumer has not rotated within 30 s; it goes on trying",
			s->name);
	else if (s->rotation.status < 0 && s->rotation.status != -ENODATA)
		request_refuse(r, "failed", "session '%s' cannot be rotated: %s", s->name,
			s->rotation.message ? s->rotation.message : "");
	else {
		if (s->rotation.status)
			add_rotation(r, "empty", NULL);
		else
			add_rotation(r, "completed", s->rotation.path);
		request_finish(r);
	}
}

static void run_rotate(struct request *r)
{
	bool no_wait = request_bool(r, "no_wait");
	int ret;

	if (!may_rotate(r))
		return;
	barrier_init(&r->barrier, &r->daemon->loop, answer_rotate);
	ret = rotation_begin(r->session, false, no_wait ? NULL : &r->barrier);
	if (ret < 0) {
		request_refuse(r, ret == -EBUSY ? "busy" : "failed", "session '%s': %s",
			r->session->name, ret == -EBUSY ? busy_rotating : strerror(-ret));
	} else if (no_wait) {
		_cleanup_free_ char *path = rotation_path(r->session);

		add_rotation(r, "ongoing", path);
		request_finish(r);
	} else {
		barrier_arm(&r->barrier, CONSUMER_ANSWER_NS);
	}
}

static void report_cleared(struct request *r, const struct session *s)
{
	struct json_object *o;

	add_to(r, "sessions", report_session(s));
	if (request_bool(r, "no_wait"))
		return;
	o = json_object_new_object();
	json_add(o, "session", json_object_new_string(s->name));
	json_add(o, "events", json_object_new_uint64(s->rotation.n_cleared));
	add_to(r, "cleared", o);
}

static bool is_target(const struct request *r, const struct session *s)
{
	return s == r->session || (request_bool(r, "all") && s->uid == r->peer.uid);
}

static void answer_clear(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);
	const struct session *s;

	ky_list_foreach (s, &r->daemon->sessions, node) {
		if (!is_target(r, s))
			continue;
		if (b->timed_out)
			note_failure(r, -ETIMEDOUT, s->name,
				"its consumer has not cleared it within 30 s; it goes on trying");
		else if (s->rotation.status < 0 && !request_bool(r, "no_wait"))
			note_failure(r, s->rotation.status, s->name,
				s->rotation.message ? s->rotation.message : "");
		else
			report_cleared(r, s);
	}
	request_finish(r);
}

/* What is in buffers that are overwritten is the programs' alone: nobody but they may move their heads. */
static const char *why_not_cleared(const struct session *s)
{
	const struct channel *c;

	if (s->snapshot)
		return "it keeps events for snapshots, which are in the programs' hands: new ones will overwrite them";
	ky_list_foreach (c, &s->channels, node)
		if (c->overwrite)
			return "it has a channel in overwrite mode, whose events are in the programs' hands: new ones will overwrite them";
	return NULL;
}

static void clear(struct request *r, struct session *s)
{
	const char *why = why_not_cleared(s);
	struct barrier *b = request_bool(r, "no_wait") ? NULL : &r->barrier;
	int ret = why ? -EOPNOTSUPP : rotation_begin(s, true, b);

	if (ret < 0)
		note_failure(r, ret, s->name,
			why		? why
			: ret == -EBUSY ? busy_rotating
					: strerror(-ret));
}

static void run_clear(struct request *r)
{
	struct session *s;

	barrier_init(&r->barrier, &r->daemon->loop, answer_clear);
	add(r, "sessions", json_object_new_array());
	ky_list_foreach (s, &r->daemon->sessions, node)
		if (is_target(r, s))
			clear(r, s);
	barrier_arm(&r->barrier, CONSUMER_ANSWER_NS);
}

static void answer_schedule(struct request *r)
{
	add(r, "session", report_session(r->session));
	request_finish(r);
}

#define ROTATION_TIMER_MIN_US 1000u
#define ROTATION_TIMER_MAX_US (1000000ull * 3600 * 24 * 365)

static void run_enable_rotation(struct request *r)
{
	uint64_t timer_us = request_bytes(r, "timer"), size = request_bytes(r, "size");
	const struct rotation *old = &r->session->rotation;

	if (!may_rotate(r))
		return;
	if (!timer_us && !size) {
		request_refuse(r, "usage", "a schedule needs 'timer' or 'size'");
	} else if (timer_us &&
		   (timer_us < ROTATION_TIMER_MIN_US || timer_us > ROTATION_TIMER_MAX_US)) {
		request_refuse(r, "usage",
			"a rotation every %" PRIu64
			" us is not possible: from %u us, which is a millisecond, to a year",
			timer_us, ROTATION_TIMER_MIN_US);
	} else {
		rotation_schedule(
			r->session, timer_us ? timer_us : old->timer_us, size ? size : old->size);
		answer_schedule(r);
	}
}

static void run_disable_rotation(struct request *r)
{
	const struct rotation *old = &r->session->rotation;
	bool timer = request_bool(r, "timer"), size = request_bool(r, "size");

	if ((timer && !old->timer_us) || (size && !old->size)) {
		request_refuse(r, "not-found", "session '%s' has no rotation by %s",
			r->session->name, timer && !old->timer_us ? "timer" : "size");
		return;
	}
	if (!timer && !size)
		timer = size = true;
	rotation_schedule(r->session, timer ? 0 : old->timer_us, size ? 0 : old->size);
	answer_schedule(r);
}

/* --- looking --- */

static void answer_events(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	/* Root and the tracing group see all programs; a user's own daemon has that user's only. */
	add(r, "applications", report_applications(r->daemon, 0, request_bool(r, "brief")));
	request_finish(r);
}

static void run_list_events(struct request *r)
{
	barrier_init(&r->barrier, &r->daemon->loop, answer_events);
	apps_query_all(r->daemon, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

static void answer_status(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	if (!r->session) {
		request_refuse(r, "not-found", "the session was destroyed meanwhile");
		return;
	}
	add(r, "session", report_session(r->session));
	add(r, "warnings", report_warnings(r->session));
	request_finish(r);
}

static void run_status(struct request *r)
{
	barrier_init(&r->barrier, &r->daemon->loop, answer_status);
	apps_query_all(r->daemon, &r->barrier);
	consumer_ask(&r->session->consumer, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

#define TARGET                                                                                     \
	{"channel", PARAM_STRING, false},                                                          \
	{                                                                                          \
		"patterns", PARAM_STRINGS, true                                                    \
	}

#define TRACKED                                                                                    \
	{"vpid", PARAM_STRINGS, false}, {"vuid", PARAM_STRINGS, false},                            \
	{                                                                                          \
		"vgid", PARAM_STRINGS, false                                                       \
	}

const struct command commands[] = {
	{"hello", SCOPE_NONE, run_hello, {{0}}},
	{"create", SCOPE_NONE, run_create,
		{{"session", PARAM_STRING, false}, {"output", PARAM_STRING, false},
			{"snapshot", PARAM_BOOL, false}}},
	{"destroy", SCOPE_SESSIONS, run_destroy, {{0}}},
	{"start", SCOPE_SESSIONS, run_start, {{0}}},
	{"stop", SCOPE_SESSIONS, run_stop, {{0}}},
	{"pause", SCOPE_SESSIONS, run_pause, {{0}}},
	{"resume", SCOPE_SESSIONS, run_resume, {{0}}},
	{"enable-channel", SCOPE_LASTING, run_enable_channel,
		{{"channel", PARAM_STRING, true}, {"OPTION", PARAM_OPTION, false}}},
	{"set", SCOPE_LASTING, run_set,
		{{"channel", PARAM_STRING, false}, {"OPTION", PARAM_OPTION, false}}},
	{"disable-channel", SCOPE_LASTING, run_disable_channel, {{"channel", PARAM_STRING, true}}},
	{"enable-event", SCOPE_LASTING, run_enable_event,
		{TARGET, {"exclude", PARAM_STRINGS, false}, {"loglevel", PARAM_NUMBER, false},
			{"loglevel_only", PARAM_NUMBER, false}, {"filter", PARAM_STRING, false}}},
	{"disable-event", SCOPE_LASTING, run_disable_event,
		{TARGET, {"remove", PARAM_BOOL, false}}},
	{"add-context", SCOPE_LASTING, run_add_context,
		{{"contexts", PARAM_STRINGS, true}, {"channel", PARAM_STRING, false}}},
	{"track", SCOPE_LASTING, run_track, {TRACKED}},
	{"untrack", SCOPE_LASTING, run_untrack, {TRACKED}},
	{"snapshot", SCOPE_SESSION, run_snapshot,
		{{"name", PARAM_STRING, false}, {"output", PARAM_STRING, false},
			{"max_size", PARAM_BYTES, false}}},
	{"regenerate", SCOPE_SESSION, run_regenerate, {{"what", PARAM_STRING, true}}},
	{"rotate", SCOPE_SESSION, run_rotate, {{"no_wait", PARAM_BOOL, false}}},
	{"clear", SCOPE_SESSIONS, run_clear, {{0}}},
	{"enable-rotation", SCOPE_LASTING, run_enable_rotation,
		{{"timer", PARAM_BYTES, false}, {"size", PARAM_BYTES, false}}},
	{"disable-rotation", SCOPE_LASTING, run_disable_rotation,
		{{"timer", PARAM_BOOL, false}, {"size", PARAM_BOOL, false}}},
	{"list", SCOPE_NONE, run_list, {{0}}},
	{"list-events", SCOPE_NONE, run_list_events, {{"brief", PARAM_BOOL, false}}},
	{"status", SCOPE_SESSION, run_status, {{0}}},
	{"set-session", SCOPE_SESSION, run_set_session, {{0}}},
	{0},
};
