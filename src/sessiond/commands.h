/* SPDX-License-Identifier: MIT */
/*
 * What control commands share: each has a function here, called with a request whose parameters were checked by the
 * table's row (commands.c). It refuses the request or finishes it, now or when programs and consumer have answered.
 */
#ifndef SESSIOND_COMMANDS_H
#define SESSIOND_COMMANDS_H

#include "sessiond/control.h"
#include "sessiond/daemon.h"
#include "sessiond/reply.h"

void run_start(struct request *r);
void run_stop(struct request *r);
void run_pause(struct request *r);
void run_resume(struct request *r);
void run_destroy(struct request *r);
void run_create(struct request *r);
void run_set_session(struct request *r);
void run_list(struct request *r);
void run_enable_channel(struct request *r);
void run_disable_channel(struct request *r);
void run_set(struct request *r);
void run_enable_event(struct request *r);
void run_disable_event(struct request *r);
void run_add_context(struct request *r);
void run_track(struct request *r);
void run_untrack(struct request *r);
void run_snapshot(struct request *r);
void run_regenerate(struct request *r);
void run_rotate(struct request *r);
void run_clear(struct request *r);
void run_enable_rotation(struct request *r);
void run_disable_rotation(struct request *r);

/* The session that writes to this directory already, by whatever name of it; or NULL. */
struct session *output_find(struct daemon *d, const char *output);

/* The channel that the request names, or the first one; NULL when the request was refused. */
struct channel *request_channel(struct request *r);
/* A new channel of this name; NULL when the request was refused. */
struct channel *request_make_channel(struct request *r, const char *name);
/* The name of a channel that `name` may have been meant to be, or NULL. */
const char *request_channel_meant(const struct session *s, const char *name);

/* Programs are asked what of theirs the channel records now; answered when they have said it. */
void answer_with_rules(struct request *r, struct channel *c);
/* Answered when no program records any more what the channel does not want now. */
void answer_when_unmapped(struct request *r, struct channel *c);

#endif
