/* SPDX-License-Identifier: MIT */
#include "sessiond/model/trigger.h"

#include <ctype.h>
#include <stdarg.h>

#include <strings.h>

#include "base/glob.h"
#include "base/loglevel.h"
#include "base/text.h"

enum value {
	VALUE_NONE,
	VALUE_NUMBER,
	VALUE_SIZE,
	VALUE_PERCENT,
	VALUE_SIZE_OR_PERCENT,
	VALUE_TIME,
};

/* The conditions, by their kinds. */
static const struct form {
	const char *name, *example;
	enum value value;
	char op;	  /* '>', '<'; '?': any of them */
	bool has_subject; /* may have one, in parentheses */
	bool has_default; /* limit 0 without a comparison */
	bool polled;
	bool has_rule; /* the subject is a rule, and a filter may follow */
} forms[] = {
	[WHEN_EVENTS_RATE] = {"events/s", "events/s > 10000", VALUE_NUMBER, '?', .polled = true},
	[WHEN_BYTES_RATE] = {"bytes/s", "bytes/s > 10M", VALUE_SIZE, '?', .polled = true},
	[WHEN_DISCARDED] = {"discarded", "discarded", VALUE_NUMBER, '>', .has_default = true,
		.polled = true},
	[WHEN_BUFFERS] = {"buffers", "buffers > 80%", VALUE_PERCENT, '>', .polled = true},
	[WHEN_SIZE] = {"size", "size > 1G", VALUE_SIZE, '>', .polled = true},
	[WHEN_DISK_FREE] = {"disk-free", "disk-free < 5%", VALUE_SIZE_OR_PERCENT, '<',
		.polled = true},
	[WHEN_FAILING] = {"consumer-failing", "consumer-failing", VALUE_NONE, .polled = true},
	[WHEN_ROTATED] = {"rotated", "rotated", VALUE_NONE, .polled = false},
	[WHEN_DIED] = {"died", "died(shop)", VALUE_NONE, .has_subject = true},
	[WHEN_EVENT] = {"event", "event(shop:refused, warning) && amount > 1000", VALUE_NONE,
		.has_subject = true, .has_rule = true},
	[WHEN_SPAN] = {"span", "span(shop:checkout) > 20ms", VALUE_TIME, '>', .has_subject = true,
		.has_rule = true},
};

static const char *const action_names[] = {[DO_NOTIFY] = "notify",
	[DO_SNAPSHOT] = "snapshot",
	[DO_START] = "start",
	[DO_STOP] = "stop",
	[DO_ROTATE] = "rotate",
	[DO_RUN] = "run"};

#define ALL_CONDITIONS                                                                             \
	"event(...), span(...), events/s, bytes/s, discarded, buffers, size, disk-free, "          \
	"consumer-failing, rotated, died"
#define ALL_ACTIONS "notify, snapshot, start, stop, rotate, run:COMMAND"

static int KY_PRINTF(2, 3) refuse_spec(char why[TRIGGER_ERROR_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, TRIGGER_ERROR_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Copies the text without spaces around. */
static char *copy_trimmed(const char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return strndup(text, len);
}

static const struct form *find_form(const char *text, size_t len)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(forms); i++)
		if (strlen(forms[i].name) == len && !strncmp(forms[i].name, text, len))
			return &forms[i];
	return NULL;
}

/* Parses the number, size or percentage of a condition. */
static int parse_limit(struct condition *c, const struct form *f, const char *text)
{
	size_t len = strlen(text);
	char digits[32];

	if (f->value == VALUE_TIME) {
		if (ky_parse_usec(text, &c->limit) < 0 || c->limit > UINT64_MAX / 1000)
			return -EINVAL;
		c->limit *= 1000;
		return 0;
	}
	if (f->value == VALUE_NUMBER)
		return ky_parse_number(text, INT64_MAX, &c->limit);
	c->percent = len && text[len - 1] == '%';
	if (!c->percent)
		return f->value == VALUE_PERCENT ? -EINVAL : ky_parse_size(text, &c->limit);
	if (f->value == VALUE_SIZE || len > sizeof(digits))
		return -EINVAL;
	snprintf(digits, sizeof(digits), "%.*s", (int)len - 1, text);
	return ky_parse_number(digits, 100, &c->limit);
}

static int refuse_form(char *why, const struct form *f, const char *when)
{
	return refuse_spec(why, "bad condition '%s': write for example '%s'", when, f->example);
}

/* text: what follows the name and the subject. */
static int parse_comparison(
	struct condition *c, const struct form *f, const char *when, const char *text, char *why)
{
	text += strspn(text, " \t");
	if (!*text && (f->value == VALUE_NONE || f->has_default))
		return 0;
	if ((*text != '<' && *text != '>') || f->value == VALUE_NONE ||
		(f->op != '?' && *text != f->op))
		return refuse_form(why, f, when);
	c->below = *text++ == '<';
	text += strspn(text, " \t");
	return parse_limit(c, f, text) < 0 ? refuse_form(why, f, when) : 0;
}

/* "WARNING": as kymo enable-event --loglevel has it, or a number. */
static int parse_level(const char *text, int32_t *ret_level)
{
	uint64_t number;

	for (int32_t i = 0; i < KY_N_LOGLEVELS; i++)
		if (!strcasecmp(text, ky_loglevel_names[i])) {
			*ret_level = i;
			return 0;
		}
	if (ky_parse_number(text, KY_N_LOGLEVELS - 1, &number) < 0)
		return -EINVAL;
	*ret_level = (int32_t)number;
	return 0;
}

/* Makes the rule of "PATTERN" or "PATTERN, LEVEL", the subject. */
static int parse_rule(struct condition *c, char *why)
{
	char *comma = strchr(c->subject, ',');
	_cleanup_free_ char *level_text = comma ? copy_trimmed(comma + 1) : NULL, *pattern = NULL;
	int32_t level = 0;

	if (comma)
		*comma = '\0';
	pattern = copy_trimmed(c->subject);
	if (!pattern || (comma && !level_text))
		return -ENOMEM;
	if (!*pattern || strlen(pattern) > RULE_PATTERN_MAX || !ky_glob_valid(pattern))
		return refuse_spec(why, "'%.64s' is not a pattern of names", pattern);
	if (comma && (c->kind == WHEN_SPAN || parse_level(level_text, &level) < 0))
		return refuse_spec(why,
			c->kind == WHEN_SPAN ? "a span has no level: '%s'"
					     : "there is no level '%.64s'",
			level_text);
	c->rule = rule_new(pattern, NULL, 0, comma ? KY_LEVEL_AT_LEAST : KY_LEVEL_ALL, level);
	return c->rule ? 0 : -ENOMEM;
}

/* Cuts "&& FILTER" off what follows the subject, and compiles it. */
static int parse_filter(struct condition *c, const char *when, char *rest, char *why)
{
	struct ky_filter_error error;
	char *sign = strstr(rest, "&&");
	_cleanup_free_ char *text = NULL;

	if (!sign)
		return 0;
	text = copy_trimmed(sign + 2);
	*sign = '\0';
	if (!text)
		return -ENOMEM;
	c->rule->filter = filter_new(text, &error);
	if (c->rule->filter)
		return 0;
	if (!*error.text)
		return -ENOMEM;
	return refuse_spec(why, "condition '%s': filter '%s': %s", when, text, error.text);
}

static int parse_decided(
	struct condition *c, const struct form *f, const char *when, const char *rest, char *why)
{
	_cleanup_free_ char *copy = strdup(rest);
	int ret = copy ? parse_rule(c, why) : -ENOMEM;

	if (!ret)
		ret = parse_filter(c, when, copy, why);
	if (ret)
		return ret;
	rest = copy + strspn(copy, " \t");
	if (f->value == VALUE_NONE && *rest)
		return refuse_form(why, f, when);
	if (f->value == VALUE_NONE)
		return 0;
	for (size_t n = strlen(copy); n && isspace((unsigned char)copy[n - 1]); n--)
		copy[n - 1] = '\0';
	return parse_comparison(c, f, when, rest, why);
}

static int parse_condition(struct condition *c, const char *when, char *why)
{
	size_t len = strcspn(when, " \t(<>");
	const struct form *f = find_form(when, len);
	const char *rest = when + len, *close;

	if (!f)
		return refuse_spec(why, "unknown condition '%.*s': choose one of " ALL_CONDITIONS,
			(int)KY_MIN(len, (size_t)64), when);
	c->kind = (enum condition_kind)(f - forms);
	if (*rest == '(') {
		close = strchr(rest, ')');
		if (!f->has_subject || !close || close == rest + 1)
			return refuse_form(why, f, when);
		c->subject = strndup(rest + 1, (size_t)(close - rest - 1));
		if (!c->subject)
			return -ENOMEM;
		if (f->has_rule)
			return parse_decided(c, f, when, close + 1, why);
		if (!ky_glob_valid(c->subject))
			return refuse_spec(why, "'%s' is no pattern of names", c->subject);
		rest = close + 1;
	}
	if (f->has_rule)
		return refuse_form(why, f, when);
	return parse_comparison(c, f, when, rest, why);
}

static int add_action(struct trigger_spec *t, const char *text, size_t len, char *why)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(action_names); i++) {
		if (strlen(action_names[i]) != len || strncmp(action_names[i], text, len) != 0 ||
			i == DO_RUN)
			continue;
		if (t->n_actions == TRIGGER_ACTIONS_MAX)
			return refuse_spec(why, "more than %u actions", TRIGGER_ACTIONS_MAX);
		t->actions[t->n_actions++] = (enum action_kind)i;
		return 0;
	}
	return refuse_spec(
		why, "unknown action '%.*s': use " ALL_ACTIONS, (int)KY_MIN(len, (size_t)64), text);
}

/* "snapshot,notify,run:COMMAND": the command goes to the end of the text. */
static int parse_actions(struct trigger_spec *t, char *why)
{
	const char *at = t->action;
	int ret = 0;

	while (!ret) {
		size_t len;

		at += strspn(at, " \t");
		len = strcspn(at, ",");
		if (!strncmp(at, "run:", 4)) {
			if (!at[4 + strspn(at + 4, " \t")])
				return refuse_spec(why, "'run:' needs a command");
			if (t->n_actions == TRIGGER_ACTIONS_MAX)
				return refuse_spec(
					why, "more than %u actions", TRIGGER_ACTIONS_MAX);
			t->actions[t->n_actions++] = DO_RUN;
			t->command = strdup(at + 4);
			return t->command ? 0 : -ENOMEM;
		}
		ret = add_action(t, at, len, why);
		if (!at[len])
			return ret;
		at += len + 1;
	}
	return ret;
}

#define MINUTE_NS UINT64_C(60000000000)
#define SECOND_NS UINT64_C(1000000000)

/* "3/1m" */
static int parse_rate(struct trigger_spec *t, char *why)
{
	const char *slash = strchr(t->rate, '/');
	char number[24];
	uint64_t usec = 0;

	t->rate_n = 1;
	t->rate_ns = trigger_has_action(t, DO_SNAPSHOT) ? MINUTE_NS : SECOND_NS;
	if (!*t->rate)
		return 0;
	snprintf(number, sizeof(number), "%.*s",
		(int)KY_MIN(slash ? (size_t)(slash - t->rate) : 0, sizeof(number) - 1), t->rate);
	if (ky_parse_number(number, 1000000, &t->rate_n) < 0 || !t->rate_n ||
		ky_parse_usec(slash + 1, &usec) < 0 || !usec || usec > UINT64_C(31536000000000))
		return refuse_spec(why,
			"bad rate '%s': write a number and a period, for example '3/1m'", t->rate);
	t->rate_ns = usec * 1000;
	return 0;
}

/* "10", or "500M" */
static int parse_keep(struct trigger_spec *t, char *why)
{
	bool is_number = !t->keep[strspn(t->keep, "0123456789")];

	if (!*t->keep)
		return 0;
	if (!trigger_has_action(t, DO_SNAPSHOT))
		return refuse_spec(why, "--keep is for snapshots: the trigger takes none");
	if (is_number ? ky_parse_number(t->keep, KEEP_MAX, &t->keep_n) < 0
		      : ky_parse_size(t->keep, &t->keep_bytes) < 0)
		return refuse_spec(why,
			"bad limit '%.64s' of --keep: use a number of snapshots, up to %u, or a size such as 500M",
			t->keep, KEEP_MAX);
	if (!t->keep_n && !t->keep_bytes)
		return refuse_spec(why, "--keep=%.64s would keep nothing", t->keep);
	return 0;
}

int trigger_spec_init(struct trigger_spec *t, const char *name, const char *when,
	const char *action, const char *rate, const char *keep, char why[TRIGGER_ERROR_MAX])
{
	int ret;

	*t = (struct trigger_spec){.number = KY_SET_TRIGGERS};
	if (!ky_name_valid(name))
		return refuse_spec(why,
			"'%.64s' cannot name a trigger: use up to 128 letters, digits, '.', '_' and '-', and no '.' first",
			name);
	if (strlen(when) > TRIGGER_TEXT_MAX || strlen(action) > TRIGGER_TEXT_MAX)
		return refuse_spec(
			why, "a condition or an action has more than %u bytes", TRIGGER_TEXT_MAX);
	t->name = strdup(name);
	t->when = copy_trimmed(when);
	t->action = copy_trimmed(action);
	t->rate = copy_trimmed(rate ? rate : "");
	t->keep = copy_trimmed(keep ? keep : "");
	if (!t->name || !t->when || !t->action || !t->rate || !t->keep)
		return -ENOMEM;
	ret = parse_condition(&t->condition, t->when, why);
	if (!ret)
		ret = parse_actions(t, why);
	if (!ret)
		ret = parse_rate(t, why);
	return ret ? ret : parse_keep(t, why);
}

void trigger_spec_deinit(struct trigger_spec *t)
{
	free(t->name);
	free(t->when);
	free(t->action);
	free(t->rate);
	free(t->keep);
	free(t->command);
	free(t->condition.subject);
	rule_free(t->condition.rule);
}

bool condition_is_polled(const struct condition *c)
{
	return forms[c->kind].polled;
}

bool condition_is_theirs(const struct condition *c)
{
	return c->kind == WHEN_EVENT || c->kind == WHEN_SPAN;
}

/* Returns the bytes of the span's number, if the event has one in its first field; else 0. */
static uint32_t span_id_size(const struct event_desc *d)
{
	struct ky_desc_field f;
	struct ky_desc desc;

	ky_desc_open(&desc, event_desc_bytes(d));
	if (!ky_desc_next_field(&desc, &f))
		return 0;
	if (!strcmp(f.name, "span_tid") && f.kind == KYMO_FIELD_UINT && f.size == 4)
		return 4;
	return !strcmp(f.name, "async_id") && f.kind == KYMO_FIELD_UINT && f.size == 8 ? 8 : 0;
}

enum ky_span_role condition_span_role(
	const struct condition *c, const struct event_desc *d, uint32_t *ret_id_size)
{
	static const struct {
		const char *ending;
		enum ky_span_role role;
	} ends[] = {{"_begin", KY_SPAN_BEGIN}, {"_end", KY_SPAN_END}};
	size_t len = strlen(d->name), n;
	char name[2 * KY_NAME_MAX];

	for (size_t i = 0; i < KY_ARRAY_SIZE(ends); i++) {
		n = strlen(ends[i].ending);
		if (len <= n || strcmp(d->name + len - n, ends[i].ending) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(len - n), d->name);
		*ret_id_size = span_id_size(d);
		return *ret_id_size && rule_matches(c->rule, name, d->loglevel) ? ends[i].role
										: KY_SPAN_NONE;
	}
	return KY_SPAN_NONE;
}

bool condition_is_met(const struct condition *c, uint64_t value)
{
	return c->below ? value < c->limit : value > c->limit;
}

bool trigger_has_action(const struct trigger_spec *t, enum action_kind kind)
{
	for (unsigned i = 0; i < t->n_actions; i++)
		if (t->actions[i] == kind)
			return true;
	return false;
}
