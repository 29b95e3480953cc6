/* SPDX-License-Identifier: MIT */
/*
 * Listening Unix sockets and who is at the other end.
 */
#ifndef SVC_UNIX_H
#define SVC_UNIX_H

#include <sys/types.h>

#include "svc/loop.h"

/* Descriptors that listeners leave free, so that a crowd on one socket does not close the others.
 */
#define KY_LISTENER_RESERVE 64

/* The process that connected, as the kernel reports it. */
struct ky_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid; /* 0 when it is in a PID namespace that we do not see */
};

struct ky_listener {
	struct ky_watch watch;
	int fd; /* owned */
	/* fd: non-blocking, close-on-exec; owned by the callee. */
	void (*accepted)(struct ky_listener *l, int fd, const struct ky_peer *peer);
};

/*
 * Listens on path (of type SOCK_STREAM or SOCK_SEQPACKET), with this mode; group -1 leaves it. What
 * a dead daemon left there is replaced. 0 or -errno: -ENAMETOOLONG when path does not fit a
 * socket's address. The caller unlinks path in the end.
 */
int ky_listener_init(struct ky_listener *l, struct ky_loop *loop, const char *path, int type,
	mode_t mode, gid_t group,
	void (*accepted)(struct ky_listener *l, int fd, const struct ky_peer *peer));
void ky_listener_deinit(struct ky_listener *l);

/*
 * A descriptor of the process at the other end of a socket, readable when it has ended; pid: what ky_peer said. -ESRCH: it
 * has; -EMFILE: there is no descriptor left that others do not need; another -errno: it cannot be seen.
 */
int ky_peer_pidfd(int fd, pid_t pid);

/* Raises the soft limit of open descriptors to the hard one. */
void ky_raise_nofile(void);

#endif
