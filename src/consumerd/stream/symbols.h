/* SPDX-License-Identifier: MIT */
/*
 * The names of the kernel's functions that are in the stacks of a trace, as lines of
 * /proc/kallsyms: with them the stacks can be read on another host, or after a restart. The source
 * notes addresses, and this looks their functions up, each once.
 */
#ifndef CONSUMERD_STREAM_SYMBOLS_H
#define CONSUMERD_STREAM_SYMBOLS_H

#include "base/buf.h"
#include "kernel/seen.h"

struct symbols {
	struct ky_kallsyms *all; /* owned */
	struct ky_kseen seen;
	struct ky_buf text; /* the lines so far */
};

/* Reads /proc/kallsyms. Returns NULL if the kernel shows no addresses, or without memory. */
struct symbols *symbols_new(int fd);
struct symbols *symbols_free(struct symbols *s); /* NULL */
/* Reads it again: modules may have been loaded. */
void symbols_renew(struct symbols *s, int fd);
/* Adds the lines of addresses that were noted meanwhile. */
void symbols_look_up(struct symbols *s);

#endif
