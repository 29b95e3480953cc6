/* SPDX-License-Identifier: MIT */
/*
 * Listening Unix sockets and who is at the other end.
 */
#ifndef SVC_UNIX_H
#define SVC_UNIX_H

#include <sys/types.h>

#include "svc/loop.h"

/*
 * Descriptors that listeners and ring sets leave free, so that a crowd on one socket does not close
 * the others, and each ring set can be sent to its consumer.
 */
#define KY_LISTENER_RESERVE 64
/* Returns whether the descriptor is one of these. A process that may open few has no reserve. */
bool ky_fd_in_reserve(int fd);

/* The process that connected, as the kernel reports it. */
struct ky_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid; /* 0 when it is in a PID namespace that we do not see */
};

struct ky_listener {
	struct ky_watch watch;
	struct ky_timer again; /* set when there was no descriptor for a connection */
	struct ky_loop *loop;
	int fd; /* owned */
	/* fd: non-blocking, close-on-exec; owned by the callee. */
	void (*accepted)(struct ky_listener *l, int fd, const struct ky_peer *peer);
};

/*
 * Listens on path (of type SOCK_STREAM or SOCK_SEQPACKET), with this mode. Group -1 leaves the
 * group unchanged. Replaces the socket of a dead daemon. The caller unlinks path in the end.
 * Returns 0, or -errno: -ENAMETOOLONG if path is too long for a socket's address.
 */
int ky_listener_init(struct ky_listener *l, struct ky_loop *loop, const char *path, int type,
	mode_t mode, gid_t group,
	void (*accepted)(struct ky_listener *l, int fd, const struct ky_peer *peer));
/* Accepts the connections that have come, out of turn: all, or as many as the time allows. */
void ky_listener_accept_all(struct ky_listener *l, uint64_t max_ns);
void ky_listener_deinit(struct ky_listener *l);

/*
 * Opens a descriptor of the process at the other end of a socket. It becomes readable when the
 * process exits. pid is the result of ky_peer. Returns the descriptor; -ESRCH if the process has
 * exited; -EMFILE if the only free descriptors are reserved for other uses; or another -errno if
 * the process cannot be seen.
 */
int ky_peer_pidfd(int fd, pid_t pid);

/*
 * Descriptors from other processes. A close may sleep for as long as their sender likes: a socket
 * with SO_LINGER, a file of a FUSE file system. A message in a socket holds its descriptors until
 * somebody receives it or closes the socket. So listeners refuse them (SO_PASSRIGHTS, Linux 6.16),
 * and the sender gets EPERM. On older kernels a thread closes them.
 */
#define KY_UNIX_MAX_FDS 253u /* descriptors that the kernel passes with one message */

/* Lets the peer of a connection send descriptors: the caller trusts it with its time. */
void ky_unix_allow_fds(int fd);
/*
 * Closes a descriptor that a peer sent, or a connection whose peer may have sent some. Never
 * sleeps. Returns -1.
 */
int ky_close_foreign(int fd);
/*
 * Receives a message, or the available part of a stream, and all descriptors that came with it. The
 * caller owns the descriptors. Sets *ret_flags to msg_flags. Returns the length, 0 at the peer's
 * end, or -errno; -EAGAIN also if a signal interrupts it.
 */
ssize_t ky_unix_receive(int fd, void *buf, size_t size, int ret_fds[KY_UNIX_MAX_FDS],
	size_t *ret_n_fds, int *ret_flags);

/*
 * Raises the soft limits of open descriptors, of the size of files and of processor time to the
 * hard ones, and that of the stack if messages need more. Returns 0, or -ENOMEM if the stack cannot
 * have as much.
 */
int ky_raise_limits(void);

#endif
