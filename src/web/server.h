/* SPDX-License-Identifier: MIT */
/*
 * A small web server for one user and one page, by libmicrohttpd. `kymo web` uses it.
 *
 * Other users of the machine, and other pages in the user's browser, must not read the trace.
 * So the server listens on one address. It answers only requests that contain the token, which only
 * the printed link has, whose Host is its own address, and which no other origin made. It accepts
 * GET and HEAD only, and limits connections, their memory and their time, and the rate of requests.
 * When there are many connections, those that never showed the token make room for new ones.
 */
#ifndef WEB_SERVER_H
#define WEB_SERVER_H

#include "base/buf.h"

struct ky_web;

/* Called in any thread, several at once. Return 0, or -errno: the request then fails. */
struct ky_web_content {
	/* Appends the page. */
	int (*page)(void *arg, struct ky_buf *to);
	/* Appends the data of a range of time, in nanoseconds since 1970. */
	int (*data)(void *arg, int64_t begin_ns, int64_t end_ns, struct ky_buf *to);
	/* Appends one line of JSON about what there is. Called each second for each listener. */
	int (*state)(void *arg, struct ky_buf *to);
	void *arg;
};

/*
 * Starts the server. listen: "ADDRESS:PORT", "[ADDRESS]:PORT" or "PORT"; port 0: any free one.
 * content: copied. Returns 0, -EINVAL for a bad address, or the error of listening.
 */
int ky_web_start(struct ky_web **ret, const char *listen, const struct ky_web_content *content);
/* Returns the link with the token; borrowed. */
const char *ky_web_link(const struct ky_web *w);
/* Ends all connections, and frees w. Accepts NULL. */
void ky_web_stop(struct ky_web *w);

/* The functions above. The command line loads the module, and finds them at KY_WEB_OPS. */
struct ky_web_ops {
	__typeof__(ky_web_start) *start;
	__typeof__(ky_web_link) *link;
	__typeof__(ky_web_stop) *stop;
};

#define KY_WEB_OPS "ky_web_ops"
extern const struct ky_web_ops ky_web_ops;

#endif
