/* SPDX-License-Identifier: MIT */
#include "cli/select.h"

#include "reader/reader.h"

#include <ctype.h>

#define NS_PER_S 1000000000

/* --- texts of times --- */

/* ".nnn" at *p, which moves behind it, in nanoseconds; 0 when there is none. */
static int64_t parse_fraction(const char **p)
{
	int64_t ns = 0, digit = NS_PER_S / 10;

	if (**p != '.')
		return 0;
	for (++*p; isdigit((unsigned char)**p); ++*p, digit /= 10)
		ns += (**p - '0') * digit;
	return ns;
}

/*
 * A number of at most n digits at *p, which moves behind it and behind the character `end`, if that
 * is not 0.
 */
static bool parse_part(const char **p, int n, char end, int *ret)
{
	*ret = 0;
	if (!isdigit((unsigned char)**p))
		return false;
	for (; n-- > 0 && isdigit((unsigned char)**p); ++*p)
		*ret = 10 * *ret + (**p - '0');
	if (end && *(*p)++ != end)
		return false;
	return true;
}

/* "YYYY-MM-DD" and a blank or T. */
static bool parse_date(struct tm *tm, const char **text)
{
	const char *p = *text;

	if (!parse_part(&p, 4, '-', &tm->tm_year) || !parse_part(&p, 2, '-', &tm->tm_mon) ||
		!parse_part(&p, 2, 0, &tm->tm_mday) || (*p != ' ' && *p != 'T'))
		return false;
	tm->tm_year -= 1900;
	tm->tm_mon--;
	*text = p + 1;
	return true;
}

/* "HH:MM[:SS[.N]]", a time that exists, at *text, which moves behind it. */
static bool parse_clock(struct cli_limit *l, const char **text)
{
	struct tm *tm = &l->tm;
	const char *p = *text;

	if (!parse_part(&p, 2, ':', &tm->tm_hour) || !parse_part(&p, 2, 0, &tm->tm_min))
		return false;
	if (*p == ':') {
		p++;
		if (!parse_part(&p, 2, 0, &tm->tm_sec))
			return false;
		l->ns = parse_fraction(&p);
	} else if (p - *text != 5) {
		return false; /* "1:2" could be minutes and seconds */
	}
	*text = p;
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

/* Makes the time one of UTC. Returns false if there is no such date. */
static bool take_as_utc(struct cli_limit *l)
{
	int day = l->tm.tm_mday;
	time_t seconds = timegm(&l->tm);

	l->kind = CLI_LIMIT_ABSOLUTE;
	return l->tm.tm_mday == day &&
	       !__builtin_add_overflow(l->ns, (__int128)seconds * NS_PER_S, &l->ns);
}

/* "N[.N][UNIT]" in nanoseconds. */
static bool parse_duration(const char *p, bool with_unit, int64_t *ret_ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", NS_PER_S}, {"", NS_PER_S},
		{"m", 60LL * NS_PER_S}, {"h", 3600LL * NS_PER_S}};
	int64_t whole = 0, fraction;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
			__builtin_add_overflow(whole, *p - '0', &whole))
			return false;
	fraction = parse_fraction(&p);
	for (size_t i = 0; i < KY_ARRAY_SIZE(units); i++) {
		if (strcmp(p, units[i].name) || (*p && !with_unit))
			continue;
		fraction = (int64_t)((__int128)fraction * units[i].ns / NS_PER_S);
		return !__builtin_mul_overflow(whole, units[i].ns, ret_ns) &&
		       !__builtin_add_overflow(*ret_ns, fraction, ret_ns);
	}
	return false;
}

bool cli_select_duration(const char *text, int64_t *ret_ns)
{
	return parse_duration(text, true, ret_ns);
}

static bool parse_limit(struct cli_limit *l, const char *text)
{
	const char *p = text;
	bool is_clock;

	if (*p == '@') {
		bool is_before = p[1] == '-';

		l->kind = CLI_LIMIT_ABSOLUTE;
		if (!parse_duration(p + 1 + is_before, false, &l->ns))
			return false;
		l->ns = is_before ? -l->ns : l->ns;
		return true;
	}
	if (*p == '+' || *p == '-') {
		l->kind = *p == '+' ? CLI_LIMIT_AFTER : CLI_LIMIT_BEFORE;
		return parse_duration(p + 1, true, &l->ns);
	}
	l->kind = parse_date(&l->tm, &p) ? CLI_LIMIT_DATE : CLI_LIMIT_DAY;
	is_clock = parse_clock(l, &p);
	if (is_clock && !*p)
		return true;
	if (is_clock && l->kind == CLI_LIMIT_DATE && !strcmp(p, "Z"))
		return take_as_utc(l);
	if (l->kind == CLI_LIMIT_DATE)
		return false;
	l->kind = CLI_LIMIT_ABSOLUTE;
	return parse_duration(text, false, &l->ns);
}

int cli_select_parse(struct cli *cli, struct cli_selection *s)
{
	const char *begin = cli_get(cli, "begin"), *end = cli_get(cli, "end");

	*s = (struct cli_selection){
		.events = cli_get(cli, "event"), .filter = cli_get(cli, "filter")};
	for (int i = 0; i < 2; i++) {
		const char *text = i ? end : begin;

		if (text && !parse_limit(i ? &s->end : &s->begin, text))
			return cli_usage(cli,
				"bad time '%s': write [YYYY-MM-DD ]HH:MM[:SS[.N]], YYYY-MM-DDTHH:MM:SS[.N]Z in UTC, seconds since 1970, +1.5s or -200ms",
				text);
	}
	return CLI_OK;
}

bool cli_select_is_given(const struct cli_selection *s)
{
	return s->begin.kind || s->end.kind || s->events || s->filter;
}

/* --- the trace's times --- */

bool cli_first_event(struct ky_trace_reader *reader, int64_t *ret_ns)
{
	struct ky_select all = KY_SELECT_ALL;
	struct ky_cursor *cursor;
	struct ky_item item;
	bool found = false;

	if (ky_cursor_open(&cursor, reader, &all, NULL) < 0)
		return false;
	while (!found && ky_cursor_next(cursor, &item, NULL) > 0)
		found = item.kind == KY_ITEM_EVENT && item.has_time;
	if (found)
		*ret_ns = item.ns;
	ky_cursor_close(cursor);
	return found;
}

/* The last event at or after from_ns. */
static bool find_last_from(struct ky_trace_reader *reader, int64_t from_ns, int64_t *ret_ns)
{
	struct ky_select select = KY_SELECT_ALL;
	uint8_t *nothing = calloc(reader->n_classes + 1, 1);
	struct ky_totals totals = {0};
	struct ky_cursor *cursor;
	struct ky_item item;

	select.wanted = nothing;
	select.from_ns = from_ns;
	if (nothing && !ky_cursor_open(&cursor, reader, &select, NULL)) {
		while (ky_cursor_next(cursor, &item, NULL) > 0)
			;
		ky_cursor_totals(cursor, &totals);
		ky_cursor_close(cursor);
	}
	free(nothing);
	*ret_ns = totals.end_ns;
	return totals.has_time;
}

/* The last event lies behind the last place of some stream. */
static bool find_last(struct ky_trace_reader *reader, int64_t *ret_ns)
{
	int64_t from_ns = INT64_MIN;

	if (ky_trace_reader_index(reader) < 0)
		return false;
	for (size_t i = 0; i < reader->n_streams; i++) {
		const struct ky_stream *s = reader->streams[i];

		if (s->n_places)
			from_ns = KY_MAX(from_ns, ky_place_ns(s, &s->places[s->n_places - 1]));
	}
	return find_last_from(reader, from_ns, ret_ns) || find_last_from(reader, INT64_MIN, ret_ns);
}

/* Local time that exists, in nanoseconds since 1970. is_dst: as tm_isdst. */
static bool to_ns(const struct cli_limit *l, int is_dst, int64_t *ret_ns)
{
	struct tm tm = l->tm;
	time_t seconds;

	tm.tm_isdst = is_dst;
	seconds = mktime(&tm);
	if (tm.tm_mday != l->tm.tm_mday || tm.tm_mon != l->tm.tm_mon ||
		tm.tm_hour != l->tm.tm_hour || tm.tm_min != l->tm.tm_min)
		return false;
	return !__builtin_mul_overflow((int64_t)seconds, (int64_t)NS_PER_S, ret_ns) &&
	       !__builtin_add_overflow(*ret_ns, l->ns, ret_ns);
}

/*
 * Of a time that exists twice, because the clock was set back, returns the first one that is not
 * before the first event.
 */
static bool to_ns_of_trace(
	const struct cli_limit *l, struct ky_trace_reader *reader, int64_t *ret_ns)
{
	int64_t summer_ns, winter_ns, event_ns;

	if (!to_ns(l, 1, &summer_ns) || !to_ns(l, 0, &winter_ns) || summer_ns == winter_ns ||
		!cli_first_event(reader, &event_ns))
		return to_ns(l, -1, ret_ns);
	*ret_ns = event_ns <= KY_MIN(summer_ns, winter_ns) ? KY_MIN(summer_ns, winter_ns)
							   : KY_MAX(summer_ns, winter_ns);
	return true;
}

/* False if there is no such time. Without events any time will do. */
static bool resolve_limit(struct cli_limit l, struct ky_trace_reader *reader, int64_t *ret_ns)
{
	int64_t event_ns = 0;
	time_t first;
	struct tm day;

	switch (l.kind) {
	case CLI_LIMIT_AFTER:
		cli_first_event(reader, &event_ns);
		return !__builtin_add_overflow(event_ns, l.ns, ret_ns);
	case CLI_LIMIT_BEFORE:
		find_last(reader, &event_ns);
		return !__builtin_sub_overflow(event_ns, l.ns, ret_ns);
	case CLI_LIMIT_DAY:
		cli_first_event(reader, &event_ns);
		first = (time_t)(event_ns / NS_PER_S - (event_ns % NS_PER_S < 0));
		if (localtime_r(&first, &day)) {
			l.tm.tm_year = day.tm_year;
			l.tm.tm_mon = day.tm_mon;
			l.tm.tm_mday = day.tm_mday;
		}
		return to_ns_of_trace(&l, reader, ret_ns);
	case CLI_LIMIT_DATE:
		return to_ns_of_trace(&l, reader, ret_ns);
	default:
		*ret_ns = l.ns;
		return true;
	}
}

static int no_memory(struct cli *cli)
{
	return cli_fail(cli, "failed", "cannot read the trace: %s", strerror(ENOMEM));
}

static void find_near_member(const struct ky_node *scope, const char *name, const char **near)
{
	for (uint32_t i = 0; scope && i < scope->n; i++) {
		const char *const names[] = {scope->children[i].name, *near, NULL};

		if (scope->children[i].is_shown && *names[0] && strcmp(names[0], name) != 0)
			*near = cli_nearest(name, names);
	}
}

static const char *near_context(
	const struct ky_trace_reader *reader, const char *name, const char *near)
{
	for (size_t i = 0; i < reader->n_classes; i++) {
		const struct ky_event_class *e = reader->classes[i];

		find_near_member(e->context, name, &near);
		find_near_member(e->stream->event_context, name, &near);
		find_near_member(e->stream->packet_context, name, &near);
	}
	return near;
}

const char *cli_near_field(const struct ky_trace_reader *reader, const char *name, const char *near)
{
	for (size_t i = 0; i < reader->n_classes; i++)
		find_near_member(reader->classes[i]->fields, name, &near);
	return near_context(reader, name, near);
}

/* Appends the names from a structure or variant to its first value. */
static void add_member(struct ky_buf *to, const struct ky_node *n)
{
	while (n->n && (n->kind == KY_NODE_STRUCT || n->kind == KY_NODE_VARIANT)) {
		const struct ky_node *member = n->children;

		while (!member->is_shown && member + 1 < n->children + n->n)
			member++;
		if (*member->name)
			ky_buf_printf(to, ".%s", member->name);
		n = member;
	}
}

bool cli_has_members(
	const struct ky_trace_reader *reader, const char *name, char text[CLI_MEMBERS_TEXT])
{
	struct ky_field_ref f = {.whole = NULL};
	struct ky_buf member = {0};

	for (size_t i = 0; i < reader->n_classes && !f.whole; i++)
		ky_field_find_whole(&f, reader->classes[i], name);
	if (!f.whole)
		return false;
	add_member(&member, f.whole);
	snprintf(text, CLI_MEMBERS_TEXT,
		"'%.200s' is a %s: name one of its members, such as '%.200s%.*s'", name,
		f.whole->kind == KY_NODE_STRUCT ? "structure" : "variant", name,
		(int)KY_MIN(member.len, (size_t)64), member.data ? member.data : "");
	ky_buf_deinit(&member);
	return true;
}

static void warn_lacking(struct cli *cli, const struct ky_trace_reader *reader, const char *field)
{
	static const char ctx[] = "$ctx.";
	bool is_context = !strncmp(field, ctx, sizeof(ctx) - 1);
	const char *near = is_context ? near_context(reader, field + sizeof(ctx) - 1, NULL)
				      : cli_near_field(reader, field, NULL);
	char members[CLI_MEMBERS_TEXT];

	if (cli_has_members(reader, field, members))
		cli_warn(cli, "%s", members);
	else if (is_context)
		cli_warn(cli, "no event that is selected has the context '%s'%s%s%s", field,
			near ? ": did you mean '$ctx." : "", near ? near : "", near ? "'?" : "");
	else if (near)
		cli_warn(cli, "no event that is selected has a field '%s': did you mean '%s'?",
			field, near);
	else
		cli_warn(cli,
			"no event that is selected has a field '%s'; a text has quotes: \"%s\"",
			field, field);
}

const char *cli_near_event(const struct ky_trace_reader *reader, const char *name)
{
	const char *near = NULL;

	for (size_t i = 0; i < reader->n_classes; i++) {
		const char *const names[] = {reader->classes[i]->name, near, NULL};

		near = cli_nearest(name, names);
	}
	return near;
}

/* Warns of a pattern that matches no event of the trace. */
static void warn_no_event(
	struct cli *cli, const struct ky_trace_reader *reader, const char *pattern)
{
	bool is_name = !strpbrk(pattern, "*?[\\");
	const char *near = is_name ? cli_near_event(reader, pattern) : NULL, *longer = NULL;
	size_t n = strlen(pattern);

	for (size_t i = 0; i < reader->n_classes && is_name; i++) {
		const char *other = reader->classes[i]->name;

		if (!strncmp(other, pattern, n) && other[n] == '_')
			longer = other;
	}
	if (longer)
		cli_warn(cli, "no event is named '%s': -e '%s_*' selects '%s' and its like",
			pattern, pattern, longer);
	else if (reader->n_classes)
		cli_warn(cli, "no event of the trace %s '%s'%s%s%s",
			is_name ? "is named" : "matches", pattern, near ? ": did you mean '" : "",
			near ? near : "", near ? "'?" : "");
}

static void warn_mistake(struct cli *cli, const char *field, enum ky_expr_mistake mistake)
{
	if (mistake == KY_MISTAKE_LIST)
		cli_warn(cli, "'%s' is an array: name one of its elements, such as '%s[0]'", field,
			field);
	else
		cli_warn(cli, "'%s' is a %s", field,
			mistake == KY_MISTAKE_TEXT
				? "text: == and != compare it with another text, in quotes"
				: "number: it cannot be compared with a text");
}

int cli_select_apply(struct cli *cli, const struct cli_selection *s, struct ky_trace_reader *reader,
	struct ky_query *ret_query)
{
	struct ky_query *q = ret_query;
	struct ky_filter_error error = {0};
	char field[KY_EXPR_PATH_MAX], pattern[KY_QUERY_PATTERN_MAX];
	const char *patterns = s->events;
	enum ky_expr_mistake mistake;
	int r = 0;

	ky_query_init(q, reader);
	if ((s->begin.kind && !resolve_limit(s->begin, reader, &q->select.from_ns)) ||
		(s->end.kind && !resolve_limit(s->end, reader, &q->select.to_ns)))
		return cli_usage(
			cli, "--begin or --end is a time that does not exist: write another one");
	if (q->select.from_ns > q->select.to_ns)
		cli_warn(cli, "--begin is later than --end");
	if (s->events)
		r = ky_query_events(q, s->events);
	if (r == -EINVAL)
		return cli_usage(cli, "bad pattern in '%s'", s->events);
	if (!r && s->filter)
		r = ky_query_filter(q, s->filter, &error);
	if (r == -EINVAL)
		return strstr(error.text, " at character ")
			       ? cli_usage(cli, "bad filter: %s", error.text)
			       : cli_usage(cli, "bad filter: %s at character %u", error.text,
					 error.position);
	if (r < 0)
		return no_memory(cli);
	while (patterns && !s->may_grow && ky_query_lacks_event(q, &patterns, pattern))
		warn_no_event(cli, reader, pattern);
	if (ky_query_lacks_field(q, field))
		warn_lacking(cli, reader, field);
	else if (ky_query_mistakes_type(q, field, &mistake))
		warn_mistake(cli, field, mistake);
	return CLI_OK;
}
