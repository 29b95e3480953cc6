/* SPDX-License-Identifier: MIT */
/*
 * Memory that is freed all at once, with a limit. It holds everything that the metadata of one
 * trace makes the reader allocate. Used by the parser and the layout compiler; not shared between
 * threads.
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
/*
 * Returns zeroed memory, aligned for any type; NULL without memory or beyond the limit. n may be 0.
 */
void *ky_arena_alloc(struct ky_arena *a, size_t n);
/*
 * Makes room for one more element, which is zero, at the end of *array, which has n elements and
 * room for cap. Returns it, or NULL.
 */
void *ky_arena_grow(struct ky_arena *a, void *array, size_t *n, size_t *cap, size_t size);
/* Returns a NUL-terminated copy of n bytes, or NULL. */
char *ky_arena_strndup(struct ky_arena *a, const char *s, size_t n);

#endif
