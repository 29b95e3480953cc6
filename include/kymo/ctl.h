/* SPDX-License-Identifier: MIT */
/*
 * Control of a session daemon from C: a connection, requests and replies. The control protocol
 * (docs/protocol.md of the sources) describes the requests and their replies. The `kymo` command
 * uses these functions.
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

#define KYMO_CTL_API __attribute__((__visibility__("default")))

/* A connection to a session daemon. */
struct kymo_ctl;
/* A JSON value: object, list, string, number or boolean. */
struct kymo_value;

/*
 * Connects to the daemon of this run directory. If rundir is NULL: to the one in KYMO_RUNDIR if
 * that is set, else to the system's if this user may control it, else to the user's own. The caller
 * closes *ret_ctl. Returns 0, or -errno: -ENOENT or -ECONNREFUSED if no daemon runs there, -EACCES
 * if this user may not control it, -ENAMETOOLONG for a path that no socket can have, -ENOMEM.
 */
KYMO_CTL_API int kymo_ctl_open(const char *rundir, struct kymo_ctl **ret_ctl);
/*
 * Closes the connection and connects again, as kymo_ctl_open did, with the same errors. The caller
 * still owns ctl.
 */
KYMO_CTL_API int kymo_ctl_reopen(struct kymo_ctl *ctl);
/* Closes the connection. Accepts NULL. Sessions continue without the connection. */
KYMO_CTL_API void kymo_ctl_close(struct kymo_ctl *ctl);
/* Returns the daemon's run directory; borrowed from ctl. */
KYMO_CTL_API const char *kymo_ctl_rundir(const struct kymo_ctl *ctl);
/* Sets how long a call waits for the reply, in milliseconds. Default 30,000; 0: no limit. */
KYMO_CTL_API void kymo_ctl_set_timeout(struct kymo_ctl *ctl, unsigned timeout_ms);

/*
 * Sends a command and waits for the reply. params: an object, or NULL for none; the caller keeps
 * it. If it returns 0, *ret_reply is the daemon's reply, which may be an error (kymo_reply_ok); the
 * caller frees it. Without a reply, it returns -errno: -ECONNRESET if the daemon ended before it
 * read the request, which the caller can send to the successor; -EPIPE if it ended and may have
 * carried out the request; -ETIMEDOUT; -EMSGSIZE for more than the protocol allows; -EPROTO for an
 * invalid reply; -ENOMEM. After an error only kymo_ctl_reopen and kymo_ctl_close accept the
 * connection.
 */
KYMO_CTL_API int kymo_ctl_call(struct kymo_ctl *ctl, const char *command,
	const struct kymo_value *params, struct kymo_value **ret_reply);

/*
 * Requests the messages of triggers from now on; all: also those that the daemon has kept. session:
 * NULL for all sessions that this user may use. Returns as kymo_ctl_call. If the reply is no error,
 * the connection is only for messages then: for kymo_ctl_fd, kymo_ctl_message and kymo_ctl_close.
 */
KYMO_CTL_API int kymo_ctl_watch(
	struct kymo_ctl *ctl, const char *session, int all, struct kymo_value **ret_reply);
/* Returns a descriptor that is readable when kymo_ctl_message has something to do; borrowed. */
KYMO_CTL_API int kymo_ctl_fd(const struct kymo_ctl *ctl);
/*
 * Returns 1 with the next message, which the caller frees; 0 if there is none yet; -ESHUTDOWN if
 * the session was destroyed, or the daemon is ending; or an error of kymo_ctl_call.
 */
KYMO_CTL_API int kymo_ctl_message(struct kymo_ctl *ctl, struct kymo_value **ret_message);

/* Returns 1 if the daemon carried out the request, else 0. Replies may be NULL in these three. */
KYMO_CTL_API int kymo_reply_ok(const struct kymo_value *reply);
/*
 * Return the reason of a failure: a word for programs ("not-found", ...) and a sentence for users;
 * borrowed, never NULL.
 */
KYMO_CTL_API const char *kymo_reply_code(const struct kymo_value *reply);
KYMO_CTL_API const char *kymo_reply_error(const struct kymo_value *reply);

/* Returns a new, empty object, or NULL if allocation fails. */
KYMO_CTL_API struct kymo_value *kymo_value_new(void);
/* Frees a value. Accepts NULL. */
KYMO_CTL_API void kymo_value_free(struct kymo_value *v);

/*
 * Set a member of an object to a copy of the value. Return 0, or -EINVAL if v is not an object, or
 * -ENOMEM.
 */
KYMO_CTL_API int kymo_value_set_string(struct kymo_value *v, const char *name, const char *value);
KYMO_CTL_API int kymo_value_set_u64(struct kymo_value *v, const char *name, uint64_t value);
KYMO_CTL_API int kymo_value_set_bool(struct kymo_value *v, const char *name, int value);
/* Sets the member to an empty list. */
KYMO_CTL_API int kymo_value_set_list(struct kymo_value *v, const char *name);
/* Appends a copy of the string to the list `name`, and creates the list if there is none. */
KYMO_CTL_API int kymo_value_add_string(struct kymo_value *v, const char *name, const char *value);

/* The same for any value, which both then share: it lives until neither needs it any more. */
KYMO_CTL_API int kymo_value_set(
	struct kymo_value *v, const char *name, const struct kymo_value *value);
KYMO_CTL_API int kymo_value_add(
	struct kymo_value *v, const char *name, const struct kymo_value *value);

/*
 * Reading. All accept NULL and values of other types, and then return NULL, 0 or "": a member that
 * a daemon did not send reads as empty. Results are borrowed from v.
 */
KYMO_CTL_API const struct kymo_value *kymo_value_get(const struct kymo_value *v, const char *name);
/* Return the number of elements of a list, and element i. */
KYMO_CTL_API size_t kymo_value_count(const struct kymo_value *v);
KYMO_CTL_API const struct kymo_value *kymo_value_at(const struct kymo_value *v, size_t i);
KYMO_CTL_API const char *kymo_value_string(const struct kymo_value *v);
KYMO_CTL_API uint64_t kymo_value_u64(const struct kymo_value *v);
KYMO_CTL_API int64_t kymo_value_i64(const struct kymo_value *v);
KYMO_CTL_API int kymo_value_bool(const struct kymo_value *v);
/* Returns the value as one line of JSON; valid until v changes. */
KYMO_CTL_API const char *kymo_value_json(const struct kymo_value *v);

#ifdef __cplusplus
}
#endif

#endif
