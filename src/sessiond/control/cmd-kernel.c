/* SPDX-License-Identifier: MIT */
/* enable-event and disable-event of kernel channels. */
#include "sessiond/control/commands.h"
#include "sessiond/control/json.h"
#include "sessiond/control/kernel.h"
#include "sessiond/control/report.h"
#include "sessiond/kernel/events.h"
#include "sessiond/kernel/matches.h"
#include "sessiond/kernel/probes.h"
#include "sessiond/kernel/samples.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/program-places.h"

static const char *const kinds[] = {[RULE_EVENT] = "event",
	[RULE_SYSCALL] = "syscall",
	[RULE_PROBE] = "probe",
	[RULE_FUNCTION] = "function",
	[RULE_USERSPACE_PROBE] = "userspace-probe"};

const char *rule_kind_name(const struct rule *r)
{
	return kinds[r->kind];
}

bool request_is_kernel(struct request *r, bool *ret_kernel)
{
	const char *domain = request_string(r, "domain");

	*ret_kernel = domain && !strcmp(domain, "kernel");
	if (!domain || *ret_kernel || !strcmp(domain, "user"))
		return true;
	request_refuse(r, "usage", "domain '%s' is unknown: 'user' or 'kernel'", domain);
	return false;
}

bool request_kernel_opens(struct request *r)
{
	char why[KERNEL_WHY_MAX];

	if (tracefs_open(&r->env->kernel->fs, why) < 0)
		request_refuse(r, "unsupported", "%s", why);
	return !r->refusal.code;
}

static bool request_kind(struct request *r, enum rule_kind *ret_kind)
{
	const char *kind = request_string(r, "kind");

	for (size_t i = 0; i < KY_ARRAY_SIZE(kinds); i++)
		if (!strcmp(kind ? kind : kinds[RULE_EVENT], kinds[i])) {
			*ret_kind = (enum rule_kind)i;
			return true;
		}
	request_refuse(r, "usage", "there are no rules of the kind '%s'", kind);
	return false;
}

/* Refuses a rule that no event of this kernel matches. */
static bool matches_any(struct request *r, const struct rule *rule)
{
	struct ky_buf similar = {0};
	char why[KERNEL_WHY_MAX];
	int n = kernel_count_matches(r->env->kernel, rule, &similar, why);

	if (n < 0)
		request_refuse(r, "failed", "%s", why);
	else if (!n)
		request_refuse(r, "not-found", "this kernel has no %s that matches '%s'%s%s%s",
			rule->kind == RULE_SYSCALL ? "system call" : "event", rule->pattern,
			similar.len		     ? ": did you mean "
			: rule->kind == RULE_SYSCALL ? ": 'kymo list -k --syscall' shows them"
						     : ": is its module loaded?",
			similar.len ? similar.data : "", similar.len ? "?" : "");
	ky_buf_deinit(&similar);
	return n > 0;
}

/* Refuses a filter that no event of the rule can have. */
static bool filter_fits(struct request *r, const struct rule *rule)
{
	char why[KERNEL_WHY_MAX];
	bool fits = kernel_filter_fits(r->env->kernel, rule, why);

	if (!fits)
		request_refuse(r, "usage", "%s", why);
	return fits;
}

/* Refuses what only root may do, unless root does it. */
static bool is_root(struct request *r, const char *what)
{
	if (!r->peer.uid)
		return true;
	request_refuse(r, "permission", "%s", what);
	return false;
}

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static bool check_event_name(struct request *r, const char *name, size_t n)
{
	if (n && n < 64 && strspn(name, NAME_CHARS) >= n)
		return true;
	request_refuse(r, "usage",
		"'%.*s' cannot name an event: use up to 63 letters, digits and '_'", (int)n, name);
	return false;
}

/*
 * Appends the line of a definition "NAME PATH:OFFSET ARGUMENT...". The kernel reads it by words and
 * ends it at '#' or a newline.
 */
static bool put_definition(struct request *r, struct ky_buf *lines, const char *definition)
{
	size_t n = strcspn(definition, " ");
	bool valid = definition[n] == ' ' && definition[n + 1] == '/' &&
		     strlen(definition) < PROBES_LINE_MAX;

	for (const char *p = definition; *p; p++)
		valid = valid && (unsigned char)*p >= ' ' && *p != '#' && *p != 127;
	if (!valid)
		request_refuse(r, "usage", "'%s' defines no probe of a program", definition);
	else if (check_event_name(r, definition, n))
		ky_buf_printf(lines, "p:%s\n", definition);
	return !r->refusal.code;
}

static bool put_definitions(struct request *r, struct ky_buf *lines)
{
	size_t n = request_list_length(r, "definitions");

	if (!n || n > PROBES_MAX)
		request_refuse(r, "usage",
			"a probe of a program needs the parameter 'definitions', 1 to %u texts",
			PROBES_MAX);
	for (size_t i = 0; i < n && !r->refusal.code; i++)
		put_definition(r, lines, request_list_string(r, "definitions", i));
	return !r->refusal.code;
}

static void place_found(struct request_op *o, int status, const char *message)
{
	if (status < 0)
		request_refuse(o->request, "not-found", "%s", message);
	else if (!(o->request->definitions = strdup(message)))
		request_no_memory(o->request);
}

/* The request is carried out again when the place is found. */
static void find_program_place(struct request *r, const char *name, const char *place)
{
	struct request_op *o = request_op_new(r, r->session, place_found);
	char why[REQUEST_ERROR_MAX];
	int ret;

	if (!o) {
		request_no_memory(r);
		return;
	}
	ret = program_places_find(r->env->peers, &r->peer, place, name, &o->op, why, sizeof(why));
	if (ret < 0) {
		request_op_free(o);
		request_refuse(r, ret == -EBUSY ? "busy" : "not-found", "%s", why);
	}
}

/* The daemon believes what root has found in the program; for others it looks for itself. */
static bool put_program_place(
	struct request *r, struct ky_buf *lines, const char *name, const char *place)
{
	if (!r->peer.uid)
		return put_definitions(r, lines);
	if (!check_event_name(r, name, strlen(name)))
		return false;
	if (strncmp(place, "sdt:", 4) != 0 && strchr(strrchr(place, ':') ?: place, '+'))
		request_refuse(r, "permission", "only root may probe a program at an offset");
	else if (!r->definitions)
		find_program_place(r, name, place);
	else
		ky_buf_puts(lines, r->definitions);
	return r->definitions != NULL;
}

/* "SYMBOL", "MODULE:SYMBOL", "SYMBOL+OFFSET" */
static bool put_kernel_place(
	struct request *r, struct ky_buf *lines, const char *name, const char *place)
{
	size_t n = strspn(place, NAME_CHARS ".:"), m;
	const char *offset = place + n + (place[n] == '+');

	m = place[n] == '+' ? strspn(offset, "0123456789abcdefABCDEFx") : 0;
	if (!n || n > 200 || m > 18 || (place[n] == '+' && !m) || offset[m])
		request_refuse(r, "usage",
			"'%s' is not a place of the kernel: 'SYMBOL' or 'SYMBOL+OFFSET'", place);
	else if (check_event_name(r, name, strlen(name)) &&
		 (!m || is_root(r, "only root may probe the kernel at an offset")))
		ky_buf_printf(lines, "p:%s %s\n", name, place);
	return !r->refusal.code;
}

static bool put_functions(struct request *r, struct ky_buf *lines, const char *pattern)
{
	char why[TRACEFS_WHY_MAX];

	if (probes_check(&r->env->kernel->fs, "f", why, sizeof(why)) < 0 &&
		probes_check(&r->env->kernel->fs, "p", why, sizeof(why)) < 0)
		request_refuse(r, "unsupported", "%s", why);
	else if (probes_of_functions(&r->env->kernel->fs, pattern, lines, why, sizeof(why)) < 0)
		request_refuse(r, "not-found", "%s", why);
	return !r->refusal.code;
}

/* Makes the lines that define the rule's events. Returns false as request_kernel_rules() does. */
static bool take_probe(struct request *r, struct rule *rule)
{
	const char *place = request_string(r, "place");
	struct ky_buf lines = {0};
	char why[TRACEFS_WHY_MAX];
	bool is_valid = true;

	if (!place) {
		request_refuse(r, "usage", "a rule of this kind needs the parameter 'place'");
		return false;
	}
	if (rule->kind == RULE_USERSPACE_PROBE)
		is_valid = put_program_place(r, &lines, rule->pattern, place);
	else if (rule->kind == RULE_PROBE)
		is_valid = put_kernel_place(r, &lines, rule->pattern, place);
	else
		is_valid = put_functions(r, &lines, place);
	if (is_valid && !lines.error &&
		probes_check(&r->env->kernel->fs, lines.data, why, sizeof(why)) < 0)
		request_refuse(r, "unsupported", "%s", why);
	if (is_valid && !lines.error && !r->refusal.code) {
		rule->probe = strdup(lines.data);
		rule->place = strdup(place);
	}
	ky_buf_deinit(&lines);
	if (is_valid && !r->refusal.code && (!rule->probe || !rule->place))
		request_no_memory(r);
	return is_valid && !r->refusal.code;
}

bool request_kernel_rules(struct request *r, struct rule **rules)
{
	enum rule_kind kind;

	if (!request_kind(r, &kind) || !request_kernel_opens(r))
		return false;
	if (kind >= RULE_PROBE && request_list_length(r, "patterns") != 1) {
		request_refuse(r, "usage", "a probe has one name");
		return false;
	}
	for (size_t i = 0; rules[i]; i++) {
		rules[i]->kind = kind;
		if (rules[i]->level_type != KY_LEVEL_ALL)
			request_refuse(r, "usage", "kernel events have no log levels");
		else if (kind >= RULE_PROBE ? take_probe(r, rules[i])
					    : matches_any(r, rules[i]) && filter_fits(r, rules[i]))
			continue;
		return false;
	}
	return true;
}

/* Reports who decides the rule's filter, or why it matches no event. */
static void note_split(struct request *r, const struct rule *rule)
{
	struct ky_buf text = {0};

	if (!rule->n_matched && rule->mismatch)
		ky_buf_puts(&text, rule->mismatch);
	else
		kernel_put_split(&text, r->channel->kernel, rule);
	if (text.len && !text.error)
		reply_note(r, "%s", text.data);
	ky_buf_deinit(&text);
}

/* The consumer knows the new events: the kernel may record them. */
static enum outcome apply_rules(struct request *r)
{
	struct rule *rule;
	unsigned matched = 0;

	if (!r->channel)
		return DONE;
	kernel_channel_apply(r->channel);
	if (!request_list(r, "patterns")) {
		reply_add(r, "channel", report_channel(r->channel));
		return DONE;
	}
	reply_add(r, "rules", json_object_new_array());
	ky_list_foreach (rule, &r->channel->rules, node) {
		if (!request_names_rule(r, rule) || !rule->enabled)
			continue;
		reply_add_to(r, "rules", report_rule(r->channel, rule));
		if (rule->filter)
			note_split(r, rule);
		matched += rule->n_matched;
	}
	reply_add(r, "matched", json_object_new_int((int)matched));
	return DONE;
}

/* Removes the request's rules for probes that were not made. */
static void remove_probes(struct request *r, struct channel *c)
{
	const char *known = c->kernel ? c->kernel->probes : NULL;
	char why[KERNEL_WHY_MAX];
	struct rule *rule, *tmp;
	bool any = false;

	ky_list_foreach_safe (rule, tmp, &c->rules, node) {
		if (!rule->probe || !request_names_rule(r, rule) ||
			probes_are_known(known, rule->probe))
			continue;
		channel_disable_rule(c, rule, true);
		any = true;
	}
	if (any && c->kernel)
		kernel_events_update(c, why);
}

enum outcome answer_with_kernel_rules(struct request *r, struct channel *c)
{
	char why[KERNEL_WHY_MAX];
	int ret = channel_is_active(c) ? kernel_set_make(c, why) : 0;

	if (!ret && c->kernel)
		ret = kernel_events_update(c, why);
	if (ret < 0) {
		remove_probes(r, c);
		return request_refuse(r, "failed", "%s", why);
	}
	r->channel = c;
	if (c->kernel)
		consumer_ask(&recording_of(c->session)->consumer, request_barrier(r));
	return request_await_peers(r, CONSUMER_ANSWER_NS, apply_rules);
}

enum outcome answer_when_kernel_ended(struct request *r, struct channel *c)
{
	char why[KERNEL_WHY_MAX];

	if (c->kernel && kernel_events_update(c, why) < 0)
		return request_refuse(r, "failed", "%s", why);
	kernel_channel_apply(c);
	return request_outcome(r);
}

/* --- list-kernel --- */

struct listing {
	struct request *r;
	bool calls, fields;
};

static struct json_object *report_event(
	struct request *r, const char *system, const char *name, bool fields)
{
	uint8_t buf[KY_MSG_MAX / 2];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct json_object *o = json_object_new_object();

	json_add(o, "system", json_object_new_string(system));
	json_add(o, "name", json_object_new_string(name));
	if (fields && !kernel_event_describe(r->env->kernel, system, name, &w))
		json_add(o, "fields", report_fields((struct ky_bytes){buf, (uint32_t)w.len}));
	return o;
}

/* One of a call's two events stands for the call. */
static void list_event(void *arg, const char *system, const char *name)
{
	const struct listing *l = arg;
	const char *call = kernel_event_call(system, name);
	struct json_object *o;

	if (!strcmp(system, "syscalls") ? !l->calls || !call
					: l->calls || !strncmp(system, "kymo_", 5))
		return;
	o = report_event(l->r, system, name, l->fields);
	if (call)
		json_add(o, "syscall", json_object_new_string(call));
	reply_add_to(l->r, "events", o);
}

enum outcome run_list_kernel(struct request *r)
{
	struct listing l = {r, request_bool(r, "syscall"), request_bool(r, "fields")};
	int ret;

	if (!request_kernel_opens(r))
		return REFUSED;
	ret = kernel_events_list(r->env->kernel, list_event, &l);
	return ret < 0 ? request_refuse(
				 r, "failed", "cannot list the kernel's events: %s", strerror(-ret))
		       : DONE;
}

/*
 * First prepares samples with a frequency, so that a command need not run if there can be none.
 * Then samples a process.
 */
enum outcome run_sample(struct request *r)
{
	char why[SAMPLES_WHY_MAX];
	struct session *s = r->session;
	uint32_t frequency, pid;
	int ret = 0;

	if (!r->env->bound)
		return request_refuse(r, "unsupported",
			"CPU samples are those of a command: 'kymo record --sample -- COMMAND'");
	if (request_number(r, "frequency", &frequency) && !s->samples)
		ret = samples_make(s, frequency, why);
	if (!ret && request_number(r, "pid", &pid)) {
		if (!s->samples)
			return request_refuse(r, "usage", "'sample' needs a frequency first");
		ret = samples_begin(s->samples, (pid_t)pid, why);
	}
	if (ret < 0)
		return request_refuse(r, "unsupported", "%s", why);
	reply_add(r, "kernel", json_object_new_boolean(s->samples && s->samples->kernel));
	return DONE;
}
