/* SPDX-License-Identifier: MIT */
/*
 * A session with the parts that record it: its consumer, its rotation, its snapshots. The model
 * sees only the session in it. steps.h has its steps.
 */
#ifndef SESSIOND_PEERS_RECORDING_H
#define SESSIOND_PEERS_RECORDING_H

#include "sessiond/model/contents.h"
#include "sessiond/model/op.h"
#include "sessiond/peers/barrier.h"
#include "sessiond/peers/consumer.h"
#include "sessiond/peers/deaths.h"
#include "sessiond/peers/rotation.h"
#include "sessiond/peers/trigger-list.h"

struct recording {
	struct session session;
	struct op *op;		/* done at the end of the step; NULL: nobody waits */
	struct barrier barrier; /* of the step */
	struct op passed;	/* done when it is passed */
	struct ky_job ending;	/* frees it */
	struct consumer consumer;
	struct rotation rotation;
	struct ky_list snapshots;
	struct deaths deaths;
	struct triggers triggers;
	/* snapshots that were written; number of the last one that was begun */
	unsigned n_snapshots, last_snapshot;
};

static inline struct recording *recording_of(const struct session *s)
{
	return (struct recording *)ky_container_of(s, struct recording, session);
}

/* Makes all consumers write out their data. b, if there is one, waits for them. */
void sessions_flush(struct env *e, struct barrier *b);

/* Returns the session's trigger of this name, or NULL. */
struct trigger *recording_find_trigger(const struct session *s, const char *name);

#endif
