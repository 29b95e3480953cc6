/* SPDX-License-Identifier: MIT */
/*
 * Connections on control.sock, and the dispatcher: it runs the command that a line asks for, and answers the line when the
 * command has ended.
 */
#ifndef SESSIOND_CONTROL_CLIENT_H
#define SESSIOND_CONTROL_CLIENT_H

#include "sessiond/control/request.h"
#include "svc/line-conn.h"

struct client {
	struct ky_list node; /* in daemon->clients */
	struct daemon *daemon;
	struct ky_line_conn conn;
	struct ky_peer peer;
	struct request *request; /* that is being carried out; NULL: none */
};

/* Takes fd. */
void client_accept(struct daemon *d, int fd, const struct ky_peer *peer);
struct client *client_free(struct client *c); /* NULL */

/* May the caller use it? */
bool request_may_touch(const struct request *r, const struct session *s);
/* Makes it the caller's current session. */
void request_select(struct request *r, struct session *s);
/* A session is about to be freed. */
void requests_forget_session(struct daemon *d, const struct session *s);
/*
 * Carries out a request of a predecessor once more, for nobody. Takes params; s: its session, NULL for `create`.
 */
void request_replay(struct daemon *d, const struct ky_peer *peer, struct json_object *params,
	struct session *s);

#endif
