/* SPDX-License-Identifier: MIT */
/*
 * Reports about sessions, applications and the daemon: JSON objects of docs/protocol.md. The caller
 * owns them.
 */
#ifndef SESSIOND_CONTROL_REPORT_H
#define SESSIOND_CONTROL_REPORT_H

#include <json-c/json.h>

#include "sessiond/peers/snapshot.h"

/*
 * Reports everything about the session (docs/protocol.md). The caller owns the result, as of the
 * other functions here; json_add() and reply_add() take it.
 */
struct json_object *report_session(const struct session *s);
/* Reports the contents of a snapshot, and its directory. */
struct json_object *report_snapshot(const struct snapshot *sn);
/* Reports name, state and output directory, for lists. */
struct json_object *report_session_brief(const struct session *s);
struct json_object *report_channel(const struct channel *c);
/* Reports the channel's options: their values, units, and possible values. */
struct json_object *report_options(const struct channel *c);
/* The fields of a description (proto/desc.h). */
struct json_object *report_fields(struct ky_bytes desc);
struct json_object *report_rule(const struct channel *c, struct rule *r);
/* Reports for each attribute the values that the session tracks, or "all". */
struct json_object *report_tracked(const struct session *s);
/*
 * Reports applications of one user (uid; 0: of all users) with their events; brief: without their
 * fields.
 */
struct json_object *report_applications(const struct env *e, uid_t uid, bool brief);
/*
 * Reports reasons why less is recorded than expected: a list of sentences. Without losses, it
 * leaves out what report_session has as counts and in `refused`, and a consumer that is late: what
 * is recorded is known when the session has ended.
 */
struct json_object *report_warnings(const struct session *s, bool losses);

#endif
