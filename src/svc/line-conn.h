/* SPDX-License-Identifier: MIT */
/*
 * A SOCK_STREAM connection in the loop that speaks in lines: one request, one answer, in order. The
 * next line is not looked at, nor read beyond one buffer, before the answer to the last one was
 * taken by the peer; so a peer can make us keep one line and one answer, whatever it does.
 *
 * Life as in msg-conn.h: `line` for each line, then exactly one `closed` from a job; deinit any
 * time but inside `line`.
 */
#ifndef SVC_LINE_CONN_H
#define SVC_LINE_CONN_H

#include "base/buf.h"
#include "svc/share.h"

#define KY_LINE_MAX (1u << 20)

struct ky_line_conn;

struct ky_line_conn_ops {
	/* A line, without its newline, NUL-terminated; may be changed. To be answered once, now or
	 * later. */
	void (*line)(struct ky_line_conn *c, char *line, size_t len);
	/* error: 0 when the peer closed, else -errno (-EMSGSIZE: a line of more than KY_LINE_MAX).
	 */
	void (*closed)(struct ky_line_conn *c, int error);
};

struct ky_line_conn {
	int fd; /* owned */
	struct ky_loop *loop;
	struct ky_watch watch;
	struct ky_job work;	/* takes the next line, or calls `closed` */
	struct ky_share *share; /* in which that waits for its turn; or NULL; the owner sets it */
	const struct ky_line_conn_ops *ops;
	struct ky_buf in, out;
	bool waiting; /* for the answer to the last line */
	bool ended;   /* the peer will send no more */
	bool failed;
	int error;
};

/* Takes fd (non-blocking, close-on-exec). 0 or -errno; on an error fd is closed. */
int ky_line_conn_init(
	struct ky_line_conn *c, struct ky_loop *loop, int fd, const struct ky_line_conn_ops *ops);
void ky_line_conn_deinit(struct ky_line_conn *c);
/* Sends the answer to the last line; text has no newline. Errors are reported by closed(). */
void ky_line_conn_answer(struct ky_line_conn *c, const char *text);

#endif
