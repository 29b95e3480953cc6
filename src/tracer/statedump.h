/* SPDX-License-Identifier: MIT */
/*
 * State dumps: what a program tells of itself to the sets of one session, when a daemon says STATEDUMP. Two kinds of tellers:
 * the tracer itself (statedump-self.c), in the listener; and the program's functions (statedump.c), which may do what they
 * like and take their time, so they run in a thread of their own. That thread is there once a function is registered,
 * and has the program's descriptors, which the listener has not.
 */
#ifndef TRACER_STATEDUMP_H
#define TRACER_STATEDUMP_H

#include "tracer/tracer.h"

/* All under the lock. */
/* A daemon's STATEDUMP, by the listener. True: all is recorded; else the cookie is taken later. */
bool tracer_statedump(struct tracer_conn *conn, const struct ky_app_statedump *msg);
/* The next cookie of this daemon's whose state dump is complete; false: none. */
bool tracer_statedump_take_done(struct tracer_conn *conn, uint32_t *ret_cookie);
/* The daemon has gone. */
void tracer_statedump_forget_conn(const struct tracer_conn *conn);
/* The set records no more. */
void tracer_statedump_forget_set(struct tracer_set *set);
/* The thread is there if it is needed; from a thread of the program's. 0 or -errno. */
int tracer_statedump_ensure_thread(void);
/* A function of the tracer's, which runs in that thread for whoever asks from now on. 0, -ENOMEM, -EAGAIN. */
int tracer_statedump_add_own(const struct kymo_statedump *dump);
/* In a forked child: the thread is not there. */
void tracer_statedump_reset(void);
/* The object is being unloaded: its functions are in use no more. With the lock, which is given up meanwhile. */
void tracer_statedump_forget_object(const struct kymo_object *object);

/* statedump-self.c */
/* The tracer's own events become events of the program. */
void tracer_self_add(void);
/* Tells the sets of the mask of the program's files; the lock is given up meanwhile. By the listener. */
void tracer_self_dump(const struct tracer_mask *only);
/* By a thread that is about to fork: sees to it that the listener does not have the dynamic linker's lock, nor waits for it; the lock is given up meanwhile. */
void tracer_self_before_fork(void);
/* Notices objects that were loaded or unloaded, if a session wants to know of them; the lock is given up meanwhile. By the listener. */
void tracer_self_look(void);

/* Ends the thread that dumps, when no function runs. */
void tracer_statedump_end(void);
bool tracer_statedump_is(pid_t thread);

#endif
