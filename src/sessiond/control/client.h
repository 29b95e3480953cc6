/* SPDX-License-Identifier: MIT */
/*
 * Connections on control.sock, and the dispatcher: it runs the command of a line, and answers the
 * line when the command has ended.
 */
#ifndef SESSIOND_CONTROL_CLIENT_H
#define SESSIOND_CONTROL_CLIENT_H

#include "sessiond/control/request.h"
#include "svc/line-conn.h"

struct client {
	struct ky_list node; /* in control->clients */
	struct control *control;
	struct ky_line_conn conn;
	struct ky_peer peer;
	struct user *user;	 /* referenced */
	struct request *request; /* the request that is being carried out; NULL: none */
};

/* Takes fd. */
void client_accept(struct control *k, int fd, const struct ky_peer *peer);
struct client *client_free(struct client *c); /* NULL */

/* Returns whether the caller may use the session. */
bool request_may_touch(const struct request *r, const struct session *s);
/*
 * Finds the session that the request names; r->session is NULL if it names none. Returns DONE; or
 * refuses the request if there is no such session, or it is another user's.
 */
enum outcome request_find_named(struct request *r);
/* Makes it the caller's current session. */
void request_select(struct request *r, struct session *s);

#endif
