/* SPDX-License-Identifier: MIT */
/*
 * The environment that all parts of the daemon share: loop, machine, sessions, users, and the last
 * numbers given. Each daemon has one.
 */
#ifndef SESSIOND_MODEL_ENV_H
#define SESSIOND_MODEL_ENV_H

#include "base/clock.h"
#include "sessiond/model/observer.h"
#include "sessiond/model/user.h"
#include "svc/loop.h"

struct control;
struct kernel;
struct peers;
struct rundir;

struct env {
	struct ky_loop loop;
	struct ky_list observers, sessions;
	struct ky_list lost; /* sessions, of a predecessor (lost.h) */
	struct users users;
	/* The other storeys, which the model does not know: applications and consumers, clients. */
	struct peers *peers;
	struct control *control;
	struct rundir *run;    /* peers/rundir.h */
	struct kernel *kernel; /* kernel/kernel.h */
	unsigned n_sessions;
	uid_t uid; /* the daemon's own */
	/* the user whose application's message is handled now; else the daemon's own */
	uid_t cause;
	bool all_users;	   /* root's daemon, for the applications of all users */
	bool bound;	   /* to a command: nothing of it survives it */
	bool stopping;	   /* sessions end */
	bool handing_over; /* to a successor: sessions are left as they are */
	uint32_t n_cpus;
	enum ky_clock clock;
	uint32_t last_number, last_cookie; /* given to ring sets and orders */
	char hostname[65], boot_id[40], machine_id[40], product_uuid[40]; /* "": not known */
	/* quota.h */
	uint64_t user_memory_max; /* bytes */
	bool sets_wait;		  /* some do, for memory */
	struct ky_job quota_job;
	struct ky_timer quota_look;    /* at the memory of threads' buffers, */
	bool quota_looks;	       /* while there are any */
	uint64_t quota_measured_ns;    /* when the sets' memory was looked at */
	struct ky_timer surplus_timer; /* surplus.h */
	struct ky_timer seconds_timer; /* seconds.h */
};

/* Sets all to zero, and initializes the lists. */
void env_init(struct env *e);
/* Returns a cookie, never 0: that is QUERY_ALL, and the cookie of the answer to INIT. */
uint32_t env_next_cookie(struct env *e);
uint32_t env_next_number(struct env *e);
/* Sets the user who causes what is done now: notices and lines of the log are counted as that
 * user's. */
void env_set_cause(struct env *e, uid_t uid);

#endif
