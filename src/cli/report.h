/* SPDX-License-Identifier: MIT */
/* Prints sessions for commands: the objects of docs/protocol.md as text. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

/*
 * Appends "1234 events recorded, 0 discarded, 1.2 MiB, in DIR" of a session object to `to`,
 * escaped. cli_report_losses reports other losses, and a failure of the session.
 */
void cli_format_counts(struct ky_buf *to, const struct kymo_value *session);
/*
 * Prints one line on `to` for each kind of loss of a session or a snapshot, with what to do about
 * it. Prints nothing if nothing was lost. command: the one that takes --subbuf-size and
 * --num-subbuf.
 */
void cli_report_losses(
	FILE *to, struct cli *cli, const struct kymo_value *session, const char *command);
/* Prints what a snapshot holds, its directory, and its losses. */
void cli_report_snapshot(struct cli *cli, const struct kymo_value *snapshot);
/* Prints "session 'demo' <done>: <counts>" and the losses, for each session of a reply. */
void cli_report_ended(struct cli *cli, const struct kymo_value *sessions, const char *done);
/*
 * Prints everything about one session, as `list SESSION` and `status` show it. Losses are among the
 * warnings. domain: "user" or "kernel", only channels of that; NULL: all channels.
 */
void cli_report_session(struct cli *cli, const struct kymo_value *session, const char *domain);
/* Prints "warning: ..." for each text of a list. */
void cli_report_warnings(FILE *to, struct cli *cli, const struct kymo_value *warnings);
/*
 * Prints, on a line that begins with `indent`, why no event gets into the session's trace now.
 * Prints nothing if events do. session: of `list` or `status`.
 */
void cli_report_problem(struct cli *cli, const struct kymo_value *session, const char *indent);
/* Prints a channel's contexts, as "vpid, vtid", and a newline. */
void cli_report_contexts(struct cli *cli, const struct kymo_value *channel);
/* Prints which programs an object's `tracked` has. Prints nothing, and returns false, for all. */
bool cli_report_tracked(struct cli *cli, const struct kymo_value *object);
/* Prints when a session rotates by itself. */
void cli_report_schedule(struct cli *cli, const struct kymo_value *session);
/* Prints "note: ..." for each of a reply's notes. */
void cli_report_notes(struct cli *cli, const struct kymo_value *reply);

/* Returns "CPU" or "thread": each of these has a buffer of this channel. */
const char *cli_buffers_for(struct cli *cli, const struct kymo_value *channel);
/* Returns a number of an object, or 0 if it has no such member. */
uint64_t cli_number(const struct kymo_value *object, const char *name);
/* Returns a string member of an object, safe to print. */
const char *cli_member(struct cli *cli, const struct kymo_value *object, const char *name);

/*
 * A hint how to get the process and thread of each event: by contexts, for 8 bytes and 3 ns of each
 * event, or by threads' buffers, at no cost.
 */
#define CLI_OWNER_HINT                                                                             \
	"to have the process and thread of each event: 'kymo add-context -t vpid -t vtid', or a channel with --buffers=thread"

#endif
