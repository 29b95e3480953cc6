/* SPDX-License-Identifier: MIT */
/*
 * The functions of the control commands, and the functions that they share. request.h lists their
 * results. The table's row (commands.c) has checked the parameters.
 */
#ifndef SESSIOND_CONTROL_COMMANDS_H
#define SESSIOND_CONTROL_COMMANDS_H

#include "sessiond/control/client.h"
#include "sessiond/peers/recording.h"

enum outcome run_start(struct request *r);
enum outcome run_stop(struct request *r);
enum outcome run_pause(struct request *r);
enum outcome run_resume(struct request *r);
enum outcome run_destroy(struct request *r);
enum outcome run_create(struct request *r);
enum outcome run_set_session(struct request *r);
enum outcome run_list(struct request *r);
enum outcome run_enable_channel(struct request *r);
enum outcome run_disable_channel(struct request *r);
enum outcome run_set(struct request *r);
enum outcome run_enable_event(struct request *r);
enum outcome run_disable_event(struct request *r);
enum outcome run_add_context(struct request *r);
enum outcome run_list_kernel(struct request *r);
enum outcome run_list_loggers(struct request *r);
enum outcome run_sample(struct request *r);
enum outcome run_track(struct request *r);
enum outcome run_untrack(struct request *r);
enum outcome run_snapshot(struct request *r);
enum outcome run_regenerate(struct request *r);
enum outcome run_rotate(struct request *r);
enum outcome run_clear(struct request *r);
enum outcome run_enable_rotation(struct request *r);
enum outcome run_disable_rotation(struct request *r);
enum outcome run_add_trigger(struct request *r);
enum outcome run_list_triggers(struct request *r);
enum outcome run_remove_trigger(struct request *r);
enum outcome run_watch(struct request *r);

/*
 * Returns the session that has this output, or NULL. Consumers notice the same directory by another
 * name (trace_dir_claim).
 */
struct session *output_find(const struct env *e, const char *output);

/* Returns the channel that the request names, or the first one; NULL: the request was refused. */
struct channel *request_channel(struct request *r);
/* Refuses it if the channel records another domain than the one that the command is about. */
bool request_channel_is_of(struct request *r, const struct channel *c, bool kernel);
/* The same if the request names a domain. */
bool request_channel_is_meant(struct request *r, const struct channel *c);
/* Returns a new channel of this name, not added yet; NULL: the request was refused. */
struct channel *request_make_channel(struct request *r, const char *name);
/* Returns the name of a channel that `name` may have been meant to be, or NULL. */
const char *request_channel_meant(const struct session *s, const char *name);
/* Refuses it because there is no memory. */
enum outcome request_no_memory(struct request *r);

/*
 * Asks applications for their events that the channel's rules match. The reply then has the rules.
 */
enum outcome answer_with_rules(struct request *r, struct channel *c);
/* Ends when no application records any more what the channel does not want now. */
enum outcome answer_when_unmapped(struct request *r, struct channel *c);

#endif
