/* SPDX-License-Identifier: MIT */
/* enable-event, disable-event. */
#include "base/glob.h"
#include "proto/app.h"
#include "sessiond/app.h"
#include "sessiond/commands.h"
#include "sessiond/explain.h"
#include "sessiond/report.h"

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
			reply_note(r,
				"rule '%s' is enabled in another form too, and events that either of them wants are recorded: 'kymo disable-event --remove' and enable the one that you want",
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
		reply_note(r, "%s", rule->unfit);
	} else if (!n) {
		explain_rule(&why, c, rule);
		reply_note(r, "%s", why.data ? why.data : rule->pattern);
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
		reply_add(r, "channel", report_channel(c));
		request_finish(r);
		return;
	}
	reply_add(r, "rules", json_object_new_array());
	ky_list_foreach (rule, &c->rules, node) {
		if (!is_meant(r, rule) || !rule->enabled)
			continue;
		reply_add_to(r, "rules", report_rule(c, rule));
		matched += note_matches(r, c, rule);
	}
	reply_add(r, "matched", json_object_new_int((int)matched));
	request_finish(r);
}

void answer_with_rules(struct request *r, struct channel *c)
{
	barrier_init(&r->barrier, &r->daemon->loop, answer_rules);
	apps_query_channel(c, &r->barrier);
	daemon_publish(r->daemon);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

/* made: its name when the command has made it under a name that the caller gave; else NULL. */
static void note_channel(struct request *r, const struct channel *c, const char *made)
{
	const char *near = made ? request_channel_meant(r->session, made) : NULL;

	if (near)
		reply_note(r, "channel '%s' was made: did you mean '%s'?", made, near);
	else if (made)
		reply_note(r, "channel '%s' was made", made);
	else if (!c->enabled)
		reply_note(r,
			"channel '%s' is disabled: it records nothing until 'kymo enable-channel %s'",
			c->name, c->name);
}

void run_enable_event(struct request *r)
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
		c = request_make_channel(r, name ? name : DEFAULT_CHANNEL);
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
	answer_with_rules(r, c);
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
		"channel '%s' has no enabled rule of that text: 'kymo status' shows them%s",
		c->name, strcmp(wanted, "*") ? "" : ", and --all means all of them");
}

/* A rule that was disabled can still be removed. */
void run_disable_event(struct request *r)
{
	const struct json_object *patterns = request_list(r, "patterns");
	bool everything = request_bool(r, "all_rules"), removes = request_bool(r, "remove");
	struct channel *c = request_channel(r);
	struct rule *rule, *tmp;
	unsigned n = 0;

	if (!c) /* refused: the request is over */
		return;
	if (everything == (patterns && json_object_array_length(patterns))) {
		request_refuse(r, "usage",
			"disable-event needs the parameter 'patterns' or 'all_rules', one of them");
		return;
	}
	reply_add(r, "rules", json_object_new_array());
	ky_list_foreach_safe (rule, tmp, &c->rules, node) {
		if ((!rule->enabled && !removes) || (!everything && !is_meant(r, rule)))
			continue;
		rule->enabled = false;
		reply_add_to(r, "rules", report_rule(c, rule));
		if (removes)
			channel_remove_rule(c, rule);
		n++;
	}
	if (!n && !everything)
		refuse_rules(r, c);
	else
		answer_when_unmapped(r, c);
}
