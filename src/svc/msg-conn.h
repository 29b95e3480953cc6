/* SPDX-License-Identifier: MIT */
/*
 * A SOCK_SEQPACKET connection in the loop: whole messages in, a bounded queue of messages out, with
 * descriptors either way. A peer that lets more than its bound pile up is dropped.
 *
 * The life of a connection: init; then `message` for each message; after an error, the peer's end,
 * or ky_msg_conn_fail(), exactly one `closed`, from a job, with an empty stack; the owner then
 * calls deinit. If the peer closes the connection, all its messages are handled before `closed`,
 * also if a message to it fails before that. The owner may call deinit at any other time, but not
 * inside `message`.
 */
#ifndef SVC_MSG_CONN_H
#define SVC_MSG_CONN_H

#include "svc/share.h"

#define KY_MSG_CONN_MAX	    65536u /* bytes of a message */
#define KY_MSG_CONN_MAX_FDS 4u

struct ky_msg_conn;

/*
 * Limits several connections together, those of one user: the bytes of their queued messages, and
 * by its share the CPU time for their received messages. A connection whose message waits for its
 * turn is `parked`: not watched.
 */
struct ky_msg_account {
	size_t n_bytes, max_bytes;
	struct ky_share share;
};

void ky_msg_account_init(struct ky_msg_account *a, size_t max_bytes, struct ky_shares *shares);
/* No connection may have it any more. */
void ky_msg_account_deinit(struct ky_msg_account *a);

struct ky_msg_conn_ops {
	/*
	 * A message came. fds: n_fds descriptors (close-on-exec); the callee keeps one by taking it
	 * and storing -1 in its place, the others are closed afterwards.
	 */
	void (*message)(struct ky_msg_conn *c, const void *buf, size_t len, int *fds, size_t n_fds);
	/* Over. error: 0 when the peer closed it, else -errno. */
	void (*closed)(struct ky_msg_conn *c, int error);
};

struct ky_msg_conn {
	int fd; /* owned */
	struct ky_loop *loop;
	struct ky_watch watch;
	struct ky_job work; /* a message, or the end; in the account's share, if there is one */
	const struct ky_msg_conn_ops *ops;
	struct ky_list queue; /* struct out */
	size_t n_queued_bytes;
	size_t max_queued_bytes;
	struct ky_msg_account *account; /* or NULL; the owner sets it */
	bool parked;			/* not watched until the work is done */
	bool deferred;			/* by the owner, while it handles a message */
	uint8_t *unfinished;		/* owned: the message that was deferred; or NULL */
	size_t unfinished_len;
	bool offers_fds; /* -EPERM, as the peer takes no descriptors yet, does not end it */
	size_t max_fds;	 /* descriptors accepted with a message; more is an error, -EPROTO */
	bool peer_ended; /* the peer has closed it; its last messages are still handled */
	bool failed;
	int error;
};

/*
 * Starts a connection, and takes ownership of fd (non-blocking, close-on-exec). Returns 0 or
 * -errno; on an error it closes fd.
 */
int ky_msg_conn_init(struct ky_msg_conn *c, struct ky_loop *loop, int fd,
	const struct ky_msg_conn_ops *ops, size_t max_queued_bytes, size_t max_fds);
/* Handles a message that has arrived already, before the loop reports it. */
void ky_msg_conn_look(struct ky_msg_conn *c);
/* Closes and forgets it, without `closed`. Harmless on a zeroed one. */
void ky_msg_conn_deinit(struct ky_msg_conn *c);
/* Ends the conversation: `closed` comes from a job. */
void ky_msg_conn_fail(struct ky_msg_conn *c, int error);
/* Returns whether a message has arrived, and waits for its turn. */
static inline bool ky_msg_conn_waits(const struct ky_msg_conn *c)
{
	return ky_job_is_added(&c->work);
}
/*
 * Handles a message now, out of turn. Returns false if none has arrived. For the last messages of a
 * peer that has ended.
 */
bool ky_msg_conn_receive(struct ky_msg_conn *c);
/*
 * For the owner of a connection with an account, in `message`: ky_msg_conn_is_over() returns
 * whether the message has had its time in this turn. If so, the owner may stop, remember how far it
 * has come, and call ky_msg_conn_defer(): `message` is called with the same bytes, without
 * descriptors, when it is this user's turn again.
 */
bool ky_msg_conn_is_over(const struct ky_msg_conn *c);
void ky_msg_conn_defer(struct ky_msg_conn *c);
/*
 * Sends or queues a message. Borrows fds. len is the message's length, or the error of its
 * encoding.
 *
 * Any error ends the conversation, so most callers need not check the result. Returns -ENOBUFS if
 * the peer's limit is reached, -EMSGSIZE if the message or the list of descriptors is too long or
 * the message is empty (the peer would take an empty message for a hang-up), or the socket's error.
 */
int ky_msg_conn_send(struct ky_msg_conn *c, const void *buf, int len, const int *fds, size_t n_fds);

/*
 * Defines MESSAGE_send(conn, &m, fds, n_fds), which encodes and sends a message. A table of
 * messages (proto/wire.h) expands it: KY_CONS_MESSAGES(KY_MSG_SENDER).
 */
#define KY_MSG_SENDER(msg, TYPE, FIELDS)                                                           \
	__attribute__((unused)) static inline int msg##_send(                                      \
		struct ky_msg_conn *c, const struct msg *m, const int *fds, size_t n_fds)          \
	{                                                                                          \
		uint8_t buf[KY_MSG_MAX];                                                           \
		struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};                             \
		int len = msg##_encode(&w, m);                                                     \
                                                                                                   \
		return ky_msg_conn_send(c, buf, len, fds, n_fds);                                  \
	}

#endif
