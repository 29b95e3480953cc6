/* SPDX-License-Identifier: MIT */
/*
 * A session with what records it: its consumer, its rotation, its snapshots, and the steps in which it starts and stops.
 * The model sees the session in it only.
 */
#ifndef SESSIOND_PEERS_RECORDING_H
#define SESSIOND_PEERS_RECORDING_H

#include "sessiond/model/op.h"
#include "sessiond/model/session.h"
#include "sessiond/peers/barrier.h"
#include "sessiond/peers/consumer.h"
#include "sessiond/peers/rotation.h"

#define APP_ANSWER_NS (100 * KY_NS_PER_MS) /* how long a command waits for applications */
/* Likewise for a consumer that is at work: clients wait 30 s. */
#define CONSUMER_ANSWER_NS (25000 * KY_NS_PER_MS)

struct recording {
	struct session session;
	struct op *op;		/* done at the end of the step; NULL: nobody waits */
	struct barrier barrier; /* of the step */
	struct op passed;	/* done when it is passed */
	struct ky_job ending;	/* frees it */
	struct consumer consumer;
	struct rotation rotation;
	struct ky_list snapshots;
	/* that were written; number of the last one that was begun */
	unsigned n_snapshots, last_snapshot;
};

static inline struct recording *recording_of(const struct session *s)
{
	return (struct recording *)ky_container_of(s, struct recording, session);
}

/*
 * Makes a session and begins SESSION_CREATING; op is done at its end. Returns 0; or -errno, also of ky_shm_dir_make(), and
 * nothing was made.
 */
int session_new(struct env *e, const struct session_spec *spec, struct op *op,
	struct session **ret_session);
/* Makes a predecessor's session, whose consumer and directory for buffers exist. 0 or -errno. */
int session_restore(struct env *e, const struct session_spec *spec, struct session **ret_session);
/*
 * Begin a step; op (may be NULL) is done at its end, for session_destroy() before the session is freed. -EBUSY: another
 * step goes on; -EALREADY: nothing to do; -ENOTCONN: what is stopped can be neither paused nor resumed.
 */
int session_start(struct session *s, struct op *op);
int session_stop(struct session *s, struct op *op);
/* As stop, but nothing is written out for it. */
int session_pause(struct session *s, struct op *op);
int session_resume(struct session *s, struct op *op);
int session_destroy(struct session *s, struct op *op);
/* The daemon ends before the session could: its consumer writes out the rest on its own, or waits for a successor. */
void session_abandon(struct session *s);
/* A predecessor's session whose consumer has ended too: logs that, and frees it. */
void session_lose(struct session *s);
/* A predecessor's session has got all descriptors that its consumer has: it goes on. */
void session_adopt(struct session *s);
/* Has all consumers write out what there is; b, if there is one, waits for them. */
void sessions_flush(struct env *e, struct barrier *b);

#endif
