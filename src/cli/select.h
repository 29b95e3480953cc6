/* SPDX-License-Identifier: MIT */
/*
 * The options -e, -f, --begin and --end, which select a part of a trace. The same for all commands
 * that read traces. A command has CLI_SELECT_OPTIONS in its table, and calls cli_select_parse
 * before it opens the trace, cli_select_apply after.
 */
#ifndef CLI_SELECT_H
#define CLI_SELECT_H

#include <time.h>

#include "cli/cli.h"
#include "reader/query.h"

/* clang-format off */
#define CLI_SELECT_OPTIONS \
	{"event", 'e', "PATTERN,...", "only events whose names match: '*' is any text, '!PATTERN' excludes"}, \
	{"filter", 'f', "EXPR", "only events for which EXPR is true: see kymo-filter(7)"}, \
	{"begin", 0, "TIME", "leave out earlier events"}, \
	{"end", 0, "TIME", "leave out later events"}
/* clang-format on */
#define CLI_SELECT_SYNOPSIS "[-e PATTERN,...] [-f EXPR] [--begin=TIME] [--end=TIME]"
#define CLI_SELECT_DETAILS                                                                              \
	"TIME is [YYYY-MM-DD ]HH:MM[:SS[.N]] in local time (without a date: on the day of the first\n"  \
	"event), YYYY-MM-DDTHH:MM:SS[.N]Z in UTC, seconds since 1970 (@-1.5: before 1970), +DURATION\n" \
	"from the first event, or -DURATION before the last.\n"                                         \
	"DURATION is a number with ns, us, ms, s (or nothing), m or h.\n"

/* A limit of time. */
struct cli_limit {
	enum {
		CLI_LIMIT_NONE = 0,
		CLI_LIMIT_ABSOLUTE, /* ns since 1970 */
		CLI_LIMIT_DAY,	    /* tm and ns; the date is that of the first event */
		CLI_LIMIT_DATE,	    /* tm and ns */
		CLI_LIMIT_AFTER,    /* ns after the first event */
		CLI_LIMIT_BEFORE,   /* ns before the last event */
	} kind;
	struct tm tm;
	int64_t ns;
};

struct cli_selection {
	struct cli_limit begin, end;
	const char *events, *filter; /* borrowed, or NULL */
	bool may_grow;		     /* events may come that the trace has not yet */
};

/* Reads the options. Reports what is wrong; returns an exit code. */
int cli_select_parse(struct cli *cli, struct cli_selection *s);
/*
 * Makes the query, which the caller deinits in any case. Reports what is wrong; returns an exit
 * code.
 */
int cli_select_apply(struct cli *cli, const struct cli_selection *s, struct ky_trace_reader *reader,
	struct ky_query *ret_query);
/* The name most like this one, of the trace's fields and contexts, and near; NULL: none is. */
const char *cli_near_event(const struct ky_trace_reader *reader, const char *name);
const char *cli_near_field(
	const struct ky_trace_reader *reader, const char *name, const char *near);
#define CLI_MEMBERS_TEXT 512
/* Says that the name is that of a structure or variant, and how to name a member; false if not. */
bool cli_has_members(
	const struct ky_trace_reader *reader, const char *name, char text[CLI_MEMBERS_TEXT]);
/* The time of the first event; false if none has one. */
bool cli_first_event(struct ky_trace_reader *reader, int64_t *ret_ns);
/* Parses a duration: "1.5s", "200ms". Returns false if it is none. */
bool cli_select_duration(const char *text, int64_t *ret_ns);
/* True if any event may be left out. */
bool cli_select_is_given(const struct cli_selection *s);

#endif
