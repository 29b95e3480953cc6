/* SPDX-License-Identifier: MIT */
/*
 * A user: the memory that the applications of one UID make the daemon keep, and the limits of that
 * memory. The daemon keeps each description of an event once. Two events of a UID have the same
 * signature exactly when they have the same struct event_desc.
 */
#ifndef SESSIOND_MODEL_USER_H
#define SESSIOND_MODEL_USER_H

#include <sys/types.h>

#include "base/htab.h"
#include "base/list.h"
#include "proto/desc.h"
#include "svc/msg-conn.h"

#define USER_APPS_MAX	  4096u
#define USER_EVENTS_MAX	  65536u
#define USER_LEFT_OUT_MAX 256u	       /* parts of programs that are not recorded */
#define USER_BYTES_MAX	  (128u << 20) /* of descriptions, and tables of programs */
#define USERS_BYTES_MAX	  (512u << 20) /* of all users but the daemon's own */
#define USER_PATIENCE_NS  UINT64_C(500000000)
#define USERS_PATIENCE_NS UINT64_C(1000000000) /* of all users but the daemon's own */
#define PATIENCE_REGAIN	  100
#define USER_QUEUE_MAX	  (64u << 20) /* of messages that programs have not read */

/*
 * How long others may wait for some processes: a budget, of which a PATIENCE_REGAIN-th of the time
 * comes back, up to its limit.
 */
struct patience {
	uint64_t max_ns, left_ns;
	uint64_t at_ns; /* when it was asked last */
	bool granted;	/* the answer then */
};

struct user {
	struct ky_list node;
	struct users *of;
	uid_t uid;
	unsigned n_apps, n_left_out;
	unsigned refs;
	struct ky_htab descs;
	size_t n_bytes;
	size_t n_listed; /* bytes of its events in the answer that is made now (control/report.c) */
	struct ky_msg_account queued;
	struct patience patience;
};

struct event_desc {
	struct ky_hnode node; /* in user->descs */
	struct user *user;    /* referenced */
	unsigned refs;
	uint64_t serial; /* no other description has it, or had */
	uint32_t name_hash;
	int32_t loglevel;
	char *name; /* "provider:name", behind the bytes */
	uint32_t len;
	uint8_t bytes[]; /* checked */
};

/*
 * All users, and the daemon's time for them: its own user has a part of its own. The patience is
 * for all others.
 */
struct users {
	struct ky_list list;
	uid_t own;
	struct ky_shares own_time, time;
	struct patience patience;
	/* of all but its own user */
	unsigned n_apps;
	size_t n_bytes;
	bool unlimited; /* what a predecessor has kept is charged, and never refused */
};

void users_init(struct users *users, struct ky_loop *loop);
/*
 * Returns a reference to the user of this UID in `users`, and makes a new one if needed. Returns
 * NULL if allocation fails.
 */
struct user *user_get(struct users *users, uid_t uid);
struct user *user_unref(struct user *u); /* NULL */

/*
 * Charges bytes that applications make the daemon keep. Returns 0, or -EDQUOT if they would exceed
 * the limit, and then charges nothing. The limit is USER_BYTES_MAX, and half of what all other
 * users leave of USERS_BYTES_MAX: so there is always something left for the next one.
 */
int user_charge(struct user *u, size_t bytes);
void user_discharge(struct user *u, size_t bytes);

/*
 * Charges ns for which a command has waited for the user's applications. Returns whether it may
 * wait for them any longer. All calls of one moment are one, because the waiting is for all
 * applications at once.
 */
bool user_take_patience(struct user *u, uint64_t now_ns, uint64_t ns);
/* A command has waited for the user's applications in vain. */
void user_end_patience(struct user *u);

/*
 * Finds or makes the user's one description of these bytes, and returns a reference in *ret_desc.
 * Returns 0, -EBADMSG with *ret_why if the bytes describe nothing, -EDQUOT at the user's limits, or
 * -ENOMEM.
 */
int user_intern(
	struct user *u, struct ky_bytes bytes, struct event_desc **ret_desc, const char **ret_why);
struct event_desc *event_desc_ref(struct event_desc *d);
struct event_desc *event_desc_unref(struct event_desc *d); /* NULL */

static inline struct ky_bytes event_desc_bytes(const struct event_desc *d)
{
	return (struct ky_bytes){.data = d->bytes, .len = d->len};
}

#endif
