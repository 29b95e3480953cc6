/* SPDX-License-Identifier: MIT */
/*
 * A viewer's requests in LTTng's live protocol, and the replies to them (docs/live.md). Bytes in,
 * bytes out; it trusts no byte of a request.
 */
#ifndef LIVE_VIEWER_H
#define LIVE_VIEWER_H

#include "live/view.h"

#define VIEWER_HEAD	   16u /* of a request: size of the rest, command, version */
#define VIEWER_REQUEST_MAX 64u /* the rest */

/* A trace directory. */
struct live_session {
	char *name; /* owned */
	int root;   /* owned */
};

struct live {
	struct live_session *sessions; /* owned; only grows: a viewer knows them by number */
	size_t n_sessions;
	bool from_start;
	char host[64];
	/* Adds sessions that came since; may be NULL. */
	void (*refresh)(struct live *live);
	void *context;
};

/* The viewer was not shown these. */
struct viewer_loss {
	uint64_t n_late;    /* events that came too late to be in order */
	uint64_t n_damaged; /* streams that are damaged: their rest */
};

struct viewer {
	struct live *live;   /* borrowed */
	struct view **views; /* owned, by session; NULL: not attached */
	bool *over;	     /* likewise: the viewer has heard of the end */
	size_t n_views;
	struct viewer_loss lost; /* of sessions that it does not view any more */
};

/* Is it the directory of a trace, or of one that is about to be recorded? */
bool live_is_trace(int dir);
/* Takes root. Returns 0 or -ENOMEM; then root is closed. */
int live_add(struct live *live, const char *name, int root);
void live_deinit(struct live *live);

void viewer_init(struct viewer *v, struct live *live);
void viewer_deinit(struct viewer *v);
/* Returns what the viewer was not shown of all sessions that it has viewed. */
struct viewer_loss viewer_loss(const struct viewer *v);
/*
 * Returns how many bytes the first request of these has, 0 if that is not known yet, or -EPROTO.
 */
int64_t viewer_request_size(const uint8_t *data, size_t n);
/* Appends the reply to one request. Returns 0, or -errno: then the connection ends. */
int viewer_handle(struct viewer *v, const uint8_t *request, size_t n, struct ky_buf *reply);

#endif
