/* SPDX-License-Identifier: MIT */
/* What commands say about sessions: the objects of docs/protocol.md as text. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"

/*
 * "1234 events recorded, 0 discarded, 1.2 MiB, in DIR" of a session object, appended to `to`,
 * escaped. What was lost otherwise, and a failure of the session, are for cli_report_losses.
 */
void cli_format_counts(struct ky_buf *to, const struct kymo_value *session);
/*
 * One line on `to` for each kind of loss, with what to do about it; nothing when nothing was lost. Of a
 * session or a snapshot.
 * command: which takes --subbuf-size and --num-subbuf.
 */
void cli_report_losses(
	FILE *to, struct cli *cli, const struct kymo_value *session, const char *command);
/* What a snapshot holds, where it is, and what it lacks. */
void cli_report_snapshot(struct cli *cli, const struct kymo_value *snapshot);
/* For each session of a reply: "session 'demo' <done>: <counts>", and the losses. */
void cli_report_ended(struct cli *cli, const struct kymo_value *sessions, const char *done);
/* Everything about one session, as `list SESSION` and `status` show it; losses are among the
 * warnings. */
void cli_report_session(struct cli *cli, const struct kymo_value *session);
/* "warning: ..." for each text of a list. */
void cli_report_warnings(FILE *to, struct cli *cli, const struct kymo_value *warnings);
/* "vpid, vtid" and a newline: what a channel records with each event. */
void cli_report_contexts(struct cli *cli, const struct kymo_value *channel);
/* Which programs are tracked: of an object that has `tracked`. Nothing, and false, when all are. */
bool cli_report_tracked(struct cli *cli, const struct kymo_value *object);
/* When a session rotates by itself. */
void cli_report_schedule(struct cli *cli, const struct kymo_value *session);
/* "note: ..." for each of a reply's notes. */
void cli_report_notes(struct cli *cli, const struct kymo_value *reply);

/* "CPU" or "thread": who has a buffer of this channel. */
const char *cli_buffers_for(struct cli *cli, const struct kymo_value *channel);
/* String member of an object, safe to print. */
const char *cli_member(struct cli *cli, const struct kymo_value *object, const char *name);

/* How events of a session get to name who made them: 8 bytes and 3 ns of each event, or threads' buffers, which do at no cost. */
#define CLI_OWNER_HINT                                                                             \
	"events name their process and thread with 'kymo add-context -t vpid -t vtid', or in channels made with --buffers=thread"

#endif
