/* SPDX-License-Identifier: MIT */
/*
 * The parts of a recording that rotations have moved into TRACE/archives, and how far each was
 * shipped: .recording in one of its directories says that a sender has begun with it, and .shipped
 * that a receiver has all of it.
 */
#ifndef SHIP_ARCHIVES_H
#define SHIP_ARCHIVES_H

#include <limits.h>
#include <stdbool.h>

#include "base/util.h"

#define ARCHIVES_NAME	   "archives"
#define ARCHIVES_RECORDING ".recording"
#define ARCHIVES_SHIPPED   ".shipped"

enum archive_state {
	ARCHIVE_EMPTY, /* nothing was recorded, or it has been removed */
	ARCHIVE_NEW,   /* nothing was ever sent */
	ARCHIVE_BEGUN,
	ARCHIVE_SHIPPED
};

/* A place in the order of rotations: that of this archive; name "": before all. */
struct archive {
	uint64_t number; /* of the part, from the name */
	char name[NAME_MAX + 1];
};

/* Replaces *a by the archive behind it. Returns false if there is none. */
bool archives_next(int trace, struct archive *a);
enum archive_state archives_state(int trace, const char *name);
/*
 * Stores the place behind which a sender begins: before the first archive of which something was
 * sent, or behind all if there is none. Those before that are not for this sender.
 */
void archives_begin(int trace, struct archive *ret);
/* Returns the number of archives of which nothing was ever sent. */
unsigned archives_count_new(int trace);

#endif
