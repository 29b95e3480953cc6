/* SPDX-License-Identifier: MIT */
/* The way to a `kymo receive`: the URL of `kymo ship`, and connections there. */
#ifndef CLI_ROUTE_H
#define CLI_ROUTE_H

#include "base/buf.h"
#include "cli/cli.h"

#define ROUTE_ARGS_MAX 20

/* The command that leads to the receiver. */
struct route {
	char *argv[ROUTE_ARGS_MAX];	   /* the last ones point into the texts; ends with NULL */
	char host[256], port[8], *command; /* owned */
};

/* Takes a URL, which has to outlive the route. Reports what is wrong with it; returns a code. */
int route_parse(struct cli *cli, const char *url, struct route *ret);
void route_deinit(struct route *r);

struct connection {
	pid_t pid;
	int fd;	 /* its standard input and output */
	int err; /* what it says on its standard error */
};

/* Returns 0 or -errno; then descriptors of the connection may be open. */
int connection_open(const struct route *r, struct connection *c);
/* Releases the memory of what its command has said, but for the last of it. */
void connection_trim(const struct connection *c);
/* Ends it; done: in good order. Appends the last line that its command printed to `why`. */
void connection_end(struct connection *c, bool done, struct ky_buf *why);

#endif
