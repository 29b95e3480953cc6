/* SPDX-License-Identifier: MIT */
/*
 * Sessions that a successor of the daemon could not go on with. No command may wait when the
 * successor learns it, so it keeps the reason for later requests.
 */
#ifndef SESSIOND_MODEL_LOST_H
#define SESSIOND_MODEL_LOST_H

#include <sys/types.h>

#include "base/list.h"
#include "base/util.h"

struct env;

struct lost {
	struct ky_list node; /* in env->lost */
	uid_t uid;
	char *name, *why;
};

/* Logs why, which names the session, and keeps it: the last 16 of all users. */
void lost_add(struct env *e, uid_t uid, const char *name, const char *fmt, ...) KY_PRINTF(4, 5);
/* Returns NULL if no session of that name is lost that this user may know. */
const struct lost *lost_find(const struct env *e, uid_t uid, const char *name);
/* Root knows all. */
bool lost_is_known_to(const struct lost *l, uid_t uid);
void lost_forget(struct env *e, const char *name);
void lost_clear(struct env *e);

#endif
