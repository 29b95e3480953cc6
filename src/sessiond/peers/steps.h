/* SPDX-License-Identifier: MIT */
/*
 * The steps of a session: it is made, starts, stops, ends, or is taken over from a predecessor of
 * the daemon. Each step may wait for applications and the consumer.
 */
#ifndef SESSIOND_PEERS_STEPS_H
#define SESSIOND_PEERS_STEPS_H

#include "sessiond/model/contents.h"
#include "sessiond/model/op.h"

/*
 * Makes a session and begins SESSION_CREATING; op is done at its end. Returns 0; or -errno, also of
 * ky_shm_dir_make(), and then has made nothing.
 */
int session_new(struct env *e, const struct session_spec *spec, struct op *op,
	struct session **ret_session);
/*
 * Makes a predecessor's session, whose consumer and directory for buffers exist. Returns 0 or
 * -errno.
 */
int session_restore(struct env *e, const struct session_spec *spec, struct session **ret_session);
/*
 * Begin a step; op (may be NULL) is done at its end, for session_destroy() before the session is
 * freed. Return 0; -EBUSY: another step is under way; -EALREADY: nothing to do; -ENOTCONN: a
 * stopped session can be neither paused nor resumed.
 */
int session_start(struct session *s, struct op *op);
int session_stop(struct session *s, struct op *op);
/* Pauses the session: stops it, but writes nothing out for it. */
int session_pause(struct session *s, struct op *op);
int session_resume(struct session *s, struct op *op);
int session_destroy(struct session *s, struct op *op);
/*
 * Abandons the session, because the daemon ends before the session could. The session's consumer
 * writes the rest on its own, or waits for a successor.
 */
void session_abandon(struct session *s);
/* Logs and frees a predecessor's session whose consumer has exited too. */
void session_lose(struct session *s);

#endif
