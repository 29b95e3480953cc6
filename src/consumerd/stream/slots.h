/* SPDX-License-Identifier: MIT */
/*
 * The slots in which a stream stores where its present file began (abi/resume.h), for a consumer
 * that continues after this one was killed. The slot in use is never written: the next one becomes
 * valid with its last store.
 */
#ifndef CONSUMERD_STREAM_SLOTS_H
#define CONSUMERD_STREAM_SLOTS_H

#include "abi/resume.h"
#include "base/util.h"

struct slots {
	struct ky_resume_stream *memory; /* borrowed */
	unsigned int used;		 /* the slot in use */
	struct ky_resume_slot base;	 /* its copy */
};

/* Stores the next slot. */
void slots_store(struct slots *s, const struct ky_resume_slot *next);
/* Uses the slot that was stored. */
void slots_enter(struct slots *s);
/* Returns true if a slot was stored for this chunk. */
bool slots_have(const struct slots *s, uint64_t chunk);
/*
 * Uses the slot of the newest file. Slots of chunks later than this one were prepared and never
 * used.
 */
void slots_resume(struct slots *s, uint64_t chunk);

#endif
