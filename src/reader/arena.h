/* SPDX-License-Identifier: MIT */
/*
 * Memory that is freed all at once, with a limit: what a trace's metadata makes the reader keep.
 * Used by the TSDL parser and the layout compiler of one trace; not shared between threads.
 */
#ifndef READER_ARENA_H
#define READER_ARENA_H

#include "base/util.h"

struct ky_arena {
	struct ky_arena_chunk *chunks;
	size_t used;  /* bytes handed out */
	size_t max;   /* 0: no limit */
	size_t avail; /* bytes left in the newest chunk */
};

void ky_arena_deinit(struct ky_arena *a);
/* Zeroed memory, aligned for anything; NULL without memory or beyond the limit. n may be 0. */
void *ky_arena_alloc(struct ky_arena *a, size_t n);
/* NUL-terminated copy of n bytes. */
char *ky_arena_strndup(struct ky_arena *a, const char *s, size_t n);

#endif
