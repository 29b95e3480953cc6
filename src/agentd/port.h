/* SPDX-License-Identifier: MIT */
/*
 * The port of agents: a TCP socket that listens on the loopback address, and the file where agents
 * read its number.
 */
#ifndef AGENTD_PORT_H
#define AGENTD_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct port {
	const char *path; /* of the file; borrowed */
	int fd;
	unsigned number;
};

/*
 * Opens the port with the number in the file, if there is one and it is free, because agents that
 * were connected to a predecessor try that number again; else any free port, unless a server of
 * this user listens on that number. Then writes the file. Returns 0, or -errno with the reason in
 * `why`: -EADDRINUSE if another server serves. port_close() follows in any case.
 */
int port_open(struct port *p, const char *path, char *why, size_t why_size);
/*
 * Closes the port, and removes the file if it still has this port's number. keep: the file stays as
 * long as a successor needs to open the port again, and is removed if there is none: programs would
 * wait for a port that is closed.
 */
void port_close(struct port *p, bool keep);
/*
 * Accepts a connection. Returns its descriptor, or -errno: -EAGAIN if there is none. *ret_uid: the
 * user of the process that connects, as the kernel's table of sockets shows it. -ESRCH if no
 * process has the other end any more.
 */
int port_accept(const struct port *p, uid_t *ret_uid);

#endif
