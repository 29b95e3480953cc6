/* SPDX-License-Identifier: MIT */
/*
 * Loggers of Python and Java programs that have one of LTTng-UST's agents (docs/agents.md). Options
 * name loggers and their levels. An agent has one event for all of its loggers, so a rule for a
 * logger is a rule for that event, with a filter.
 */
#ifndef CLI_AGENTS_H
#define CLI_AGENTS_H

#include "base/buf.h"
#include "cli/cli.h"

#define CLI_OPTIONS_AGENTS                                                                         \
	{"python", 'p', NULL, "loggers of Python programs that import lttngust"},                  \
		{"jul", 'j', NULL, "loggers of java.util.logging, with LTTng's agent"},            \
		{"log4j", 0, NULL, "loggers of Log4j 1, with LTTng's agent"},                      \
	{                                                                                          \
		"log4j2", 0, NULL, "loggers of Log4j 2, with LTTng's agent"                        \
	}

struct agent_level;

struct cli_agent_domain {
	const char *option, *event;
	const struct agent_level *levels;
};

/* Returns whether an option of a domain was given. */
bool agents_are_meant(struct cli *cli);
/* Returns the domain of this name in any letters, such as "PYTHON", or NULL. */
const struct cli_agent_domain *agents_named(const char *name);
/* Appends the filter for one logger. */
void agents_put_logger(struct ky_buf *to, const char *logger);
/* Stores the domain that the options name; NULL: none. Reports an error if there are several. */
int agents_domain(struct cli *cli, const struct cli_agent_domain **ret_domain);
/*
 * Appends the filter for any of the loggers, and for the level and filter of the command line.
 * loggers: as in kymo_value_at; "*": all. Appends nothing if all messages pass.
 */
int agents_filter(struct cli *cli, const struct cli_agent_domain *d,
	const struct kymo_value *loggers, struct ky_buf *to);
/* Returns whether a filter that agents_filter made, for one logger and not all, is for this one. */
bool agents_filter_names(const char *filter, const char *logger);

#endif
