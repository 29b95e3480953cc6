/* SPDX-License-Identifier: MIT */
/*
 * Control of a session daemon from C: a connection, requests and replies. What there is to ask, and
 * what comes back, is the control protocol (docs/protocol.md of the sources); the `kymo` command is
 * written with these functions.
 *
 *	struct kymo_value *params = kymo_value_new(), *reply = NULL;
 *	struct kymo_ctl *ctl = NULL;
 *
 *	kymo_value_set_string(params, "session", "demo");
 *	if (kymo_ctl_open(NULL, &ctl) == 0 && kymo_ctl_call(ctl, "start", params, &reply) == 0 &&
 *		!kymo_reply_ok(reply))
 *		puts(kymo_reply_error(reply));
 *	kymo_value_free(reply);
 *	kymo_value_free(params);
 *	kymo_ctl_close(ctl);
 *
 * A connection and a value belong to one thread at a time. Link with `pkg-config --libs kymo-ctl`.
 */
#ifndef KYMO_CTL_H
#define KYMO_CTL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KYMO_CTL_API __attribute__((visibility("default")))

/* A connection to a session daemon. */
struct kymo_ctl;
/* A JSON value: object, list, string, number or boolean. */
struct kymo_value;

/*
 * Connects to the daemon of this run directory. With rundir NULL: the one in KYMO_RUNDIR if that is
 * set, else the system's if this user may control it, else the user's own.
 * Returns 0, or -errno: -ENOENT or -ECONNREFUSED when no daemon runs there, -EACCES when this user
 * may not control it, -ENAMETOOLONG for a path that no socket can have, -ENOMEM.
 */
KYMO_CTL_API int kymo_ctl_open(const char *rundir, struct kymo_ctl **ret_ctl);
/*
 * Connects again, as kymo_ctl_open did; the old connection is closed. Returns the same; ctl stays
 * the caller's.
 */
KYMO_CTL_API int kymo_ctl_reopen(struct kymo_ctl *ctl);
/* Accepts NULL. Sessions live on without the connection. */
KYMO_CTL_API void kymo_ctl_close(struct kymo_ctl *ctl);
/* Where the daemon is; borrowed from ctl. */
KYMO_CTL_API const char *kymo_ctl_rundir(const struct kymo_ctl *ctl);
/* How long a call waits for the reply, in milliseconds; at first 30,000. 0: for ever. */
KYMO_CTL_API void kymo_ctl_set_timeout(struct kymo_ctl *ctl, unsigned timeout_ms);

/*
 * Sends a command and waits for the reply. params: an object, or NULL for none; stays the caller's.
 * On 0 *ret_reply is the daemon's answer, which may be a refusal (kymo_reply_ok); the caller frees
 * it. Returns -errno when there is no answer: -ECONNRESET if the daemon ended and had not read the
 * request, which can be sent to its successor; -EPIPE if it ended and may have carried it out;
 * -ETIMEDOUT, -EMSGSIZE for more than the protocol allows, -EPROTO for an answer that is none,
 * -ENOMEM. After an error the connection is of no more use, but for kymo_ctl_reopen.
 */
KYMO_CTL_API int kymo_ctl_call(struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply);

/* 1 if the daemon did what was asked, else 0. Replies may be NULL in these three. */
KYMO_CTL_API int kymo_reply_ok(const struct kymo_value *reply);
/* Why not: a word for programs ("not-found", ...) and a sentence for people; borrowed, never NULL.
 */
KYMO_CTL_API const char *kymo_reply_code(const struct kymo_value *reply);
KYMO_CTL_API const char *kymo_reply_error(const struct kymo_value *reply);

/* A new, empty object, or NULL without memory. */
KYMO_CTL_API struct kymo_value *kymo_value_new(void);
/* Accepts NULL. */
KYMO_CTL_API void kymo_value_free(struct kymo_value *v);

/* Members of an object: copied. 0, or -EINVAL when v is not an object, or -ENOMEM. */
KYMO_CTL_API int kymo_value_set_string(struct kymo_value *v, const char *name, const char *value);
KYMO_CTL_API int kymo_value_set_u64(struct kymo_value *v, const char *name, uint64_t value);
KYMO_CTL_API int kymo_value_set_bool(struct kymo_value *v, const char *name, int value);
/* Makes the member an empty list. */
KYMO_CTL_API int kymo_value_set_list(struct kymo_value *v, const char *name);
/* Appends a copy of the string to the list `name`, which is made when there is none. */
KYMO_CTL_API int kymo_value_add_string(struct kymo_value *v, const char *name, const char *value);

/* The same for any value, which the two then share: it lives until neither needs it any more. */
KYMO_CTL_API int kymo_value_set(
	struct kymo_value *v, const char *name, const struct kymo_value *value);
KYMO_CTL_API int kymo_value_add(
	struct kymo_value *v, const char *name, const struct kymo_value *value);

/*
 * Reading. All accept NULL and values of other types, and then give NULL, 0 or "": what a daemon
 * does not say reads as nothing. Results are borrowed from v.
 */
KYMO_CTL_API const struct kymo_value *kymo_value_get(const struct kymo_value *v, const char *name);
/* Number of elements of a list, and element i. */
KYMO_CTL_API size_t kymo_value_count(const struct kymo_value *v);
KYMO_CTL_API const struct kymo_value *kymo_value_at(const struct kymo_value *v, size_t i);
KYMO_CTL_API const char *kymo_value_string(const struct kymo_value *v);
KYMO_CTL_API uint64_t kymo_value_u64(const struct kymo_value *v);
KYMO_CTL_API int64_t kymo_value_i64(const struct kymo_value *v);
KYMO_CTL_API int kymo_value_bool(const struct kymo_value *v);
/* The value as one line of JSON; valid until v changes. */
KYMO_CTL_API const char *kymo_value_json(const struct kymo_value *v);

#ifdef __cplusplus
}
#endif

#endif
