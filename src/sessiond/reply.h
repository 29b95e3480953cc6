/* SPDX-License-Identifier: MIT */
/* What a command's answer holds, JSON; see docs/protocol.md. Values are taken over. */
#ifndef SESSIOND_REPLY_H
#define SESSIOND_REPLY_H

#include "sessiond/control.h"

void reply_add(struct request *r, const char *name, struct json_object *value);
/* Appends to a list in the reply, made when it is not there. */
void reply_add_to(struct request *r, const char *list, struct json_object *value);
/* What the caller should know although the command succeeds. */
void reply_note(struct request *r, const char *fmt, ...) KY_PRINTF(2, 3);
/* The command failed for this session, for the others it is done: the first failure is told. error: -errno. */
void reply_failure(struct request *r, int error, const char *session, const char *message);

#endif
