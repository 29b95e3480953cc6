/* SPDX-License-Identifier: MIT */
/*
 * A ring set with one event, for tests of the writers, and a plain walk over its memory that does
 * not use the reader's side.
 */
#ifndef RING_TEST_FIXTURE_H
#define RING_TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "ring/drain.h"
#include "ring/writer.h"

#define EVENT	  5
#define N_WRITERS 64 /* sources of records: threads, and the signal handlers on top of them */

struct fixture {
	struct ky_set set;
	struct ky_hook hook;
	struct kymo_event_state state;
	struct kymo_event event;
	bool general; /* do not use the short way for the common case */
	uint64_t *consumed;
	uint64_t emitted[N_WRITERS];
	/* what a reader has taken of ring 0, for walk() to compare clocks with; NULL: nothing */
	const struct ky_drain *taken;
};

/* A record's payload: its writer, and how many records this writer wrote before. */
struct payload {
	uint32_t writer;
	uint64_t seq;
	uint8_t slack[KYMO_SCRATCH_SLACK];
} __attribute__((packed));
#define PAYLOAD 12

/* Returns zeroed memory that forked processes share. */
void *map(size_t size);
void unmap(void *p, size_t size);
/*
 * Set by a test that makes very many fixtures: map() then returns what unmap() was given lately,
 * zeroed, instead of new memory.
 */
extern bool memory_is_kept;
/* Makes a set of rings in shared memory, whose hook is on. */
void setup(struct fixture *f, uint32_t mode, uint32_t clock, uint32_t n_rings, uint32_t n_blocks,
	uint32_t block_size);
/* Gives the event another identifier; also called after the hook or `overwrite` was changed. */
void start(struct fixture *f, uint32_t id);
void teardown(struct fixture *f);

/* Records as an event does: the whole payload is at one place. */
void record(struct fixture *f, const void *payload, size_t len);
/* Records a struct payload of this writer, with the next number. */
void emit(struct fixture *f, uint32_t writer);

/* Returns the number of discarded events in all rings. */
uint64_t lost(struct fixture *f);
/* Returns the number of records before the oldest one that the ring still holds. */
uint64_t gone(struct fixture *f, uint32_t ring);

typedef void (*visit_fn)(void *arg, uint32_t id, const uint8_t *payload);
/*
 * Calls visit for each record of a ring, from its oldest block on. All payloads have len bytes.
 * Checks clocks and the tables on the way. Returns the number of records.
 */
uint64_t walk(struct fixture *f, uint32_t ring, uint32_t len, visit_fn visit, void *arg);

struct tally {
	uint64_t seen[N_WRITERS];
	uint64_t next[N_WRITERS]; /* in one ring, each writer's numbers rise */
};
/* A visit_fn for what emit() has written; arg: struct tally. */
void count_payload(void *arg, uint32_t id, const uint8_t *payload);

#endif
