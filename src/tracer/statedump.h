/* SPDX-License-Identifier: MIT */
/*
 * State dumps: an application reports its state to the sets of one session when a daemon sends
 * STATEDUMP. Two parts report it: the tracer itself (statedump-self.c), in the listener; and the
 * application's functions (statedump.c). These may do anything and take any time, so they run in a
 * thread of their own. That thread exists once a function is registered. It has the application's
 * descriptors, which the listener has not.
 */
#ifndef TRACER_STATEDUMP_H
#define TRACER_STATEDUMP_H

#include "tracer/tracer.h"

/* All are called under the lock. */
/*
 * Handles a daemon's STATEDUMP. Called by the listener. Its cookie is taken later, when all is
 * recorded. Returns true if there is no room to keep it: it is to be acknowledged at once.
 */
bool tracer_statedump(struct tracer_conn *conn, const struct ky_app_statedump *msg);
/*
 * Takes the next cookie of this daemon whose state dump is complete. Returns false if there is
 * none.
 */
bool tracer_statedump_take_done(struct tracer_conn *conn, uint32_t *ret_cookie);
/* Drops all requests of a daemon that disconnected. */
void tracer_statedump_forget_conn(const struct tracer_conn *conn);
/* Drops a set that no longer records. */
void tracer_statedump_forget_set(struct tracer_set *set);
/* Starts the thread if it is needed. Called by a thread of the application. Returns 0 or -errno. */
int tracer_statedump_ensure_thread(void);
/*
 * Adds a function of the tracer, which runs in that thread for every later request. Returns 0,
 * -ENOMEM or -EAGAIN.
 */
int tracer_statedump_add_own(const struct kymo_statedump *dump);
/* Called in a forked child: the thread does not exist there. */
void tracer_statedump_reset(void);
/*
 * Ends the use of the functions of an object that is being unloaded. Called with the lock, which it
 * releases meanwhile.
 */
void tracer_statedump_forget_object(const struct kymo_object *object);

/* statedump-self.c */
/* Adds the tracer's own events to the application's events. */
void tracer_self_add(void);
/*
 * Reports the application's files to the sets of the mask. Called by the listener. Releases the
 * lock meanwhile.
 */
void tracer_self_dump(const struct tracer_mask *only);
/*
 * Ensures that the listener neither holds the dynamic linker's lock nor waits for it. Called by a
 * thread that is about to fork. Releases the lock meanwhile.
 */
void tracer_self_before_fork(void);
/*
 * Detects objects that were loaded or unloaded, if a session requests them. Called by the listener.
 * Releases the lock meanwhile.
 */
void tracer_self_look(void);

/* Ends the thread that dumps, once no function runs. */
void tracer_statedump_end(void);
bool tracer_statedump_is(pid_t thread);
/* Returns true while it starts: tracer_statedump_is() does not know it yet. Under the lock. */
bool tracer_statedump_starts(void);
/* Returns true while a function of the application runs in the thread. Under the lock. */
bool tracer_statedump_runs(void);
/* Starts another thread after tracer_statedump_end(). Under the lock. */
void tracer_statedump_start_again(void);

#endif
