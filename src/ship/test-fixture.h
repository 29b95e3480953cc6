/* SPDX-License-Identifier: MIT */
/*
 * A trace that grows, and both ends of its way over a socket pair. Receivers are killed before a
 * call that changes a file, or have a full disk from that call on.
 */
#ifndef SHIP_TEST_FIXTURE_H
#define SHIP_TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ship/sender.h"

#define SEED 1

/* The directory of all traces, at both ends. */
extern char top[64];

/* For tests' setup and teardown. */
int make_top(void **state);
int remove_top(void **state);

struct made {
	int dir, stream, index, metadata;
	uint64_t size, n; /* bytes and packets of the stream */
	unsigned seed;
};

/* Makes a trace without packets below `top`. */
void make_trace(struct made *m, const char *name);
void free_trace(struct made *m);
/* Adds a packet of random bytes, its entry in the index, and a line of metadata. */
void add_packet(struct made *m, size_t size);

/* Makes the directory of a receiver below `top`. */
void make_far(char far[128], const char *name);

enum fate { FATE_NONE, FATE_KILLED, FATE_FULL };

/* Makes one connection; f: the receiver's fate after so many calls. Returns the sender's result. */
int connection(struct sender *s, const char *far, enum fate f, long calls);

#endif
