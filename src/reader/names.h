/* SPDX-License-Identifier: MIT */
/*
 * Names of one trace's metadata. Equal names are stored once, so that pointers to them can be
 * compared; and a name leads to a number within an owner: a member in its structure, an entry in
 * its block. Both in constant time, whatever a hostile trace calls its fields. Used by the parsers
 * of metadata and by the layout compiler.
 */
#ifndef READER_NAMES_H
#define READER_NAMES_H

#include "reader/arena.h"

struct ky_names {
	struct ky_arena *arena;	     /* holds the text; borrowed */
	struct ky_names_slot *slots; /* owned; a power of two of them, or NULL while empty */
	size_t n_slots, n;
	uint64_t seed;
};

void ky_names_init(struct ky_names *n, struct ky_arena *arena);
void ky_names_deinit(struct ky_names *n);
/* The one copy of this text, which ends at len or at a NUL, in the arena. NULL without memory. */
const char *ky_names_intern(struct ky_names *n, const char *text, size_t len);
/*
 * The number that belongs to a name (an interned one) of an owner, to be changed in place until the
 * next call. A new one is UINT32_MAX. NULL without memory.
 */
uint32_t *ky_names_at(struct ky_names *n, const void *owner, const char *name);
/* The number, or UINT32_MAX when there is none. */
uint32_t ky_names_find(const struct ky_names *n, const void *owner, const char *name);

#endif
