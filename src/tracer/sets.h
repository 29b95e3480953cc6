/* SPDX-License-Identifier: MIT */
/*
 * The parts of ring sets: sets.c handles the daemon's messages about a set, set-memory.c its
 * memory, set-hooks.c the hooks of its events. All are called under the lock (tracer/tracer.h).
 */
#ifndef TRACER_SETS_H
#define TRACER_SETS_H

#include "tracer/tracer.h"

/* Returns the set that the daemon numbered so, or NULL. */
struct tracer_set *tracer_set_find(struct tracer_conn *conn, uint32_t id);

/* --- set-memory.c --- */

/*
 * Maps the set, whose geometry is known: in parts, if that spares something, the first one only.
 * The caller keeps the descriptors. Returns 0 or -errno.
 */
int tracer_set_mmap(struct tracer_set *s, int rings_fd, int consumed_fd);
void tracer_set_munmap(struct tracer_set *s);
/*
 * Prepares the tables with an entry for each ring, zeroed. Uses those of the slot's last set again
 * if they are large enough. Returns false without memory.
 */
bool tracer_set_prepare_tables(struct tracer_set *s, uint32_t n_rings);
/* Clears only the used part of the tables: the rest may not be in memory. */
void tracer_set_clear_tables(struct tracer_set *s);
/*
 * Doubles the number of slots for the application if few are free; starts with `pool`. Released
 * slots are free, and so are unused slots that are prepared. Returns true if there was something to
 * do.
 */
bool tracer_set_grow_pool(struct tracer_set *s);

/* --- set-hooks.c --- */

/* Switches the set's events on or off, as the set is started or not. */
void tracer_set_switch_hooks(struct tracer_set *s);
/* Retires all hooks of the set: its events are not recorded there any more. */
void tracer_set_retire_hooks(struct tracer_set *s);
/*
 * Waits until no thread that saw a hook active is still writing: the kernel aborts restartable
 * sequences, and `users` counts everything else. Returns false if a thread stays inside (it is
 * stopped, or it jumped out of a signal handler).
 */
bool tracer_set_quiesce(struct tracer_set *s);
/*
 * Waits for the writers; then the set's retired hooks are free. Returns false if a writer stays:
 * then they never become free.
 */
bool tracer_set_free_retired(struct tracer_set *s);

#endif
