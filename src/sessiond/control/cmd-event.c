/* SPDX-License-Identifier: MIT */
/* enable-event, disable-event. */
#include "base/glob.h"
#include "proto/app.h"
#include "proto/desc.h"
#include "sessiond/control/commands.h"
#include "sessiond/control/explain.h"
#include "sessiond/control/json.h"
#include "sessiond/control/kernel.h"
#include "sessiond/control/report.h"
#include "sessiond/kernel/events.h"
#include "sessiond/peers/agents.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/peers.h"

/* Returns false if the pattern requires a character that no event's name has. */
static bool pattern_can_match(const char *p)
{
	for (; *p; p++) {
		if (*p == '*')
			continue;
		p += *p == '\\';
		if (!ky_desc_name_char(*p))
			return false;
	}
	return true;
}

static bool patterns_valid(struct request *r, const char *list, size_t max)
{
	size_t n = request_list_length(r, list);

	if (n > max) {
		request_refuse(
			r, "usage", "%zu patterns at once: at most %zu are possible", n, max);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const char *p = request_list_string(r, list, i);

		if (!ky_glob_valid(p) || strlen(p) > RULE_PATTERN_MAX)
			request_refuse(r, "usage",
				"'%s' is not a pattern: it must not be empty, end in a backslash or have more than %d characters",
				p, RULE_PATTERN_MAX);
		else if (!pattern_can_match(p))
			request_refuse(r, "usage",
				"'%s' can match no event: names have only letters, digits, '_', '.', '-' and ':'",
				p);
		else
			continue;
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

/* An event is recorded when any rule wants it: a narrower one does not narrow down an older one. */
static void note_variants(struct request *r, const struct channel *c, const struct rule *rule)
{
	const struct rule *other;

	if (agents_is_pattern(rule->pattern))
		return; /* each logger has a rule: the filter has its name */
	ky_list_foreach (other, &c->rules, node)
		if (other->enabled && !strcmp(other->pattern, rule->pattern) &&
			!rule_equal(other, rule))
			reply_note(r,
				"rule '%s' is enabled in another form too, and events that match either of them are recorded: remove one of them with 'kymo disable-event --remove'",
				rule->pattern);
}

/* The rules that the request asks for. NULL without memory. */
static struct rule **make_rules(
	struct request *r, size_t n, uint32_t type, uint32_t level, struct filter *filter)
{
	const char *exclusions[RULE_EXCLUSIONS_MAX];
	size_t n_exclusions = request_list_length(r, "exclude");
	struct rule **rules = calloc(n + 1, sizeof(*rules)); /* ends with NULL */

	for (size_t i = 0; i < n_exclusions; i++)
		exclusions[i] = request_list_string(r, "exclude", i);
	for (size_t i = 0; rules && i < n; i++) {
		rules[i] = rule_new(request_list_string(r, "patterns", i), exclusions,
			(uint32_t)n_exclusions, type, (int32_t)level);
		if (!rules[i])
			return rules_free(rules);
		rules[i]->filter = filter_ref(filter);
	}
	return rules;
}

/* The request's filter, a reference, or NULL when it has none; false when it is refused. */
static bool take_filter(struct request *r, bool kernel, struct filter **ret_filter)
{
	const char *text = request_string(r, "filter");
	struct ky_filter_error error;

	*ret_filter = !text    ? NULL
		      : kernel ? kernel_filter_new(text, &error)
			       : filter_new(text, &error);
	if (!text || *ret_filter)
		return true;
	r->refusal.position = error.position;
	if (*error.text)
		request_refuse(r, "usage", "filter: %s", error.text);
	else
		request_no_memory(r);
	return false;
}

bool request_names_rule(struct request *r, const struct rule *rule)
{
	for (size_t i = 0; i < request_list_length(r, "patterns"); i++)
		if (!strcmp(request_list_string(r, "patterns", i), rule->pattern))
			return true;
	return false;
}

/* How many events the rule matches, and what it does not record. */
static unsigned note_matches(struct request *r, const struct channel *c, struct rule *rule)
{
	unsigned n = channel_count_matches(c, rule, true);
	struct ky_buf why = {0};

	if (rule->mismatch) {
		reply_note(r, "%s", rule->mismatch);
	} else if (!n && !agents_is_pattern(rule->pattern)) {
		explain_rule(&why, c, rule);
		if (request_list_length(r, "patterns") == 1)
			explain_kernel_name(&why, r->env, rule);
		reply_note(r, "%s", why.data ? why.data : rule->pattern);
	}
	ky_buf_deinit(&why);
	return n;
}

static struct channel *requested_channel(struct request *r)
{
	const char *name = request_string(r, "channel");

	return channel_find(r->session, name ? name : DEFAULT_CHANNEL);
}

/* Programs with agents connect to the port: explains if they cannot. */
static void note_agents(struct request *r)
{
	const char *trouble = r->env->peers->agents->trouble;

	if (*trouble)
		reply_note(r, "agents of Python and Java programs cannot connect: %s", trouble);
}

/* Reports the rules and how many events they match. */
static enum outcome report_rules(struct request *r)
{
	struct channel *c = requested_channel(r);
	struct rule *rule;
	unsigned matched = 0;

	reply_add(r, "rules", json_object_new_array());
	ky_list_foreach (rule, &c->rules, node) {
		if (!request_names_rule(r, rule) || !rule->enabled)
			continue;
		reply_add_to(r, "rules", report_rule(c, rule));
		matched += note_matches(r, c, rule);
	}
	reply_add(r, "matched", json_object_new_int((int)matched));
	if (c->agent_domains)
		note_agents(r);
	return DONE;
}

static bool any_matches_nothing(struct request *r, const struct channel *c)
{
	struct rule *rule;

	ky_list_foreach (rule, &c->rules, node)
		if (request_names_rule(r, rule) && rule->enabled && !rule->mismatch &&
			!channel_count_matches(c, rule, true))
			return true;
	return false;
}

/*
 * Answers after the applications have replied. If a rule matches nothing, first asks them for all
 * of their events, because the reply names events that have similar names.
 */
static enum outcome answer_rules(struct request *r)
{
	struct channel *c = requested_channel(r);

	if (!request_list(r, "patterns")) {
		reply_add(r, "channel", report_channel(c));
		return DONE;
	}
	if (r->timed_out || !any_matches_nothing(r, c))
		return report_rules(r);
	apps_query_all(r->env, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, report_rules);
}

enum outcome answer_with_rules(struct request *r, struct channel *c)
{
	if (c->domain == DOMAIN_KERNEL)
		return answer_with_kernel_rules(r, c);
	apps_query_channel(c, request_barrier(r));
	agents_await(r->env->peers->agents, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, answer_rules);
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

/* Refuses rules that the channel cannot have. */
static bool is_for(struct request *r, const struct channel *c, bool kernel)
{
	if ((c->domain == DOMAIN_KERNEL) == kernel)
		return true;
	request_refuse(r, "usage", "channel '%s' records %s: choose another channel for %s",
		c->name, kernel ? "applications" : "the kernel",
		kernel ? "kernel events" : "events of applications (kernel events have '-k')");
	return false;
}

/* Enables the rules in the channel, which is made if it is missing; but not if they are refused. */
static enum outcome enable_rules(struct request *r, struct rule **rules, bool kernel)
{
	const char *name = request_string(r, "channel");
	const char *wanted = name ? name : kernel ? KERNEL_CHANNEL : DEFAULT_CHANNEL;
	struct channel *c = channel_find(r->session, wanted);
	bool made = !c;

	if (!c)
		c = request_make_channel(r, wanted);
	if (c && made && kernel)
		kernel_channel_init(c);
	if (!c || !is_for(r, c, kernel) || (kernel && !request_kernel_rules(r, rules))) {
		if (made)
			channel_free(c);
		return r->refusal.code ? REFUSED : request_await(r, run_enable_event);
	}
	for (size_t i = 0; rules[i]; i++)
		note_variants(r, c, rules[i]);
	/* A new channel has room for all patterns that a request can have. */
	if (made)
		channel_add(c);
	if (channel_enable_rules(c, rules) < 0)
		return request_refuse(r, "failed", "channel '%s' cannot have more than %u rules",
			wanted, RULES_MAX);
	note_channel(r, c, made ? name : NULL);
	return answer_with_rules(r, c);
}

enum outcome run_enable_event(struct request *r)
{
	uint32_t type, level = 0;
	enum outcome outcome;
	struct filter *filter;
	struct rule **rules;
	bool kernel;

	if (r->refusal.code) /* by what it has waited for */
		return REFUSED;
	if (!request_is_kernel(r, &kernel) || !patterns_valid(r, "patterns", RULES_MAX) ||
		!patterns_valid(r, "exclude", RULE_EXCLUSIONS_MAX) ||
		!levels_valid(r, &type, &level) || !take_filter(r, kernel, &filter))
		return REFUSED;
	rules = make_rules(r, request_list_length(r, "patterns"), type, level, filter);
	filter_unref(filter);
	outcome = rules ? enable_rules(r, rules, kernel) : request_no_memory(r);
	rules_free(rules);
	return outcome;
}

/* Refuses to disable what is not there. */
static enum outcome refuse_rules(struct request *r, const struct channel *c)
{
	const char *wanted = request_list_string(r, "patterns", 0);
	const struct rule *rule;

	ky_list_foreach (rule, &c->rules, node) {
		if (rule->enabled && name_is_meant(wanted, rule->pattern))
			return request_refuse(r, "not-found",
				"channel '%s' has no enabled rule of that text: did you mean '%s'?",
				c->name, rule->pattern);
	}
	return request_refuse(r, "not-found",
		"channel '%s' has no enabled rule of that text: 'kymo status' shows them%s",
		c->name, strcmp(wanted, "*") ? "" : ", and --all means all of them");
}

/* Names the patterns of which there is no such rule, if there are others: these are disabled. */
static void note_absent(struct request *r, const struct channel *c, bool removes)
{
	const struct rule *rule;

	for (size_t i = 0; i < request_list_length(r, "patterns"); i++) {
		const char *pattern = request_list_string(r, "patterns", i);
		bool found = false;

		ky_list_foreach (rule, &c->rules, node)
			found |= (rule->enabled || removes) && !strcmp(rule->pattern, pattern);
		if (!found)
			reply_note(r, "channel '%s' has no enabled rule '%s'", c->name, pattern);
	}
}

/* A rule that was disabled can still be removed. */
enum outcome run_disable_event(struct request *r)
{
	bool everything = request_bool(r, "all_rules"), removes = request_bool(r, "remove");
	const char *filter = request_string(r, "filter");
	struct channel *c = request_channel(r);
	struct json_object *report;
	struct rule *rule, *tmp;
	unsigned n = 0;

	if (!c || !request_channel_is_meant(r, c))
		return REFUSED;
	if (everything == (request_list_length(r, "patterns") > 0))
		return request_refuse(r, "usage",
			"disable-event needs the parameter 'patterns' or 'all_rules', one of them");
	note_absent(r, c, removes);
	reply_add(r, "rules", json_object_new_array());
	ky_list_foreach_safe (rule, tmp, &c->rules, node) {
		if ((!rule->enabled && !removes) || (!everything && !request_names_rule(r, rule)) ||
			(filter && (!rule->filter || strcmp(rule->filter->text, filter))))
			continue;
		report = report_rule(c, rule);
		json_add(report, "enabled", json_object_new_boolean(false));
		reply_add_to(r, "rules", report);
		channel_disable_rule(c, rule, removes);
		n++;
	}
	if (!n && filter)
		return request_refuse(r, "not-found",
			"channel '%s' has no such rule with the filter '%s': 'kymo status' shows them",
			c->name, filter);
	if (!n && !everything)
		return refuse_rules(r, c);
	channel_rules_changed(c);
	return answer_when_unmapped(r, c);
}
