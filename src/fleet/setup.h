/* SPDX-License-Identifier: MIT */
/*
 * The files of a fleet, and its servers: what setup.c and servers.c share. DIR is the fleet's
 * directory; DIR/nodes/N has all that the server number N needs, with paths that are relative, so
 * that it can be copied to another machine.
 */
#ifndef FLEET_SETUP_H
#define FLEET_SETUP_H

#include "base/buf.h"
#include "fleet/fleet.h"

#define NODES_MAX 3u
#define STORE_MAX ((uint64_t)10 << 30)

struct node {
	char address[128];
	unsigned port;	     /* for hosts and commands */
	unsigned route_port; /* for the other servers; 0: there are none */
	pid_t started;	     /* by us; else 0 */
};

struct setup {
	struct fleet *fleet;
	char dir[PATH_MAX - 128];
	struct node nodes[NODES_MAX];
	size_t n_nodes;
	uint64_t shards; /* streams for segments */
	bool any_port;	 /* ports were chosen here, and nobody else knows them yet */
};

/* Makes the path of a file in the directory of the fleet. */
void setup_path(const struct setup *s, char path[PATH_MAX], const char *name);
/* Writes a file as a whole: a reader sees the old file or the new one. Returns a code. */
int setup_write(struct setup *s, const char *name, const struct ky_buf *text);
/*
 * Starts a program in the directory DIR/where, with its output in the file `log` there. Returns 0
 * or -errno.
 */
int setup_spawn(const struct setup *s, const char *const *argv, const char *where, const char *log,
	pid_t *ret_pid);
/* Writes what says where the servers are: those of the servers and the administrator's. */
int setup_write_servers(struct setup *s);

/* Writes DIR/nodes/N/server.conf. Returns a code. */
int servers_write(struct setup *s, size_t i);
/* Lets the kernel choose ports of this machine that are free. Returns a code. */
int servers_choose_ports(struct setup *s);
/* Returns the process of a server if it runs here, else 0. */
pid_t servers_find(const struct setup *s, size_t i);
enum server_state {
	SERVER_SILENT,
	SERVER_DAMAGED, /* it does not know a stream that there is */
	SERVER_RUNS,
};
/* Asks one server, which may run elsewhere. The streams must have been made. */
enum server_state servers_look(struct setup *s, size_t i);
/* Starts those that do not run on this machine, and waits until each answers. Returns a code. */
int servers_start(struct setup *s);
/* Connects to any of them. Returns a code. */
int servers_connect(struct setup *s);
/* Makes the streams that are missing; those for segments share half of the room. Returns a code. */
int servers_make_streams(struct setup *s);
/* Lets those of this machine read again what hosts may do. */
void servers_reload(const struct setup *s);

#endif
