/* SPDX-License-Identifier: MIT */
/*
 * The sending end of a trace (docs/shipping.md): follows a directory whose files only grow, and
 * sends what the receiver does not have. It asks the receiver at each connection how much that is,
 * and keeps no record of its own.
 *
 * The copy can be read at each moment: metadata is sent first, then the packets that need it, then
 * their entries in indexes, which say that they count, then the watermark, which speaks of all of
 * them.
 *
 * One directory is one recording. The session moves its files when it is rotated: the sender keeps
 * the directories open, sends what they have, and ends; the next recording begins.
 */
#ifndef SHIP_SENDER_H
#define SHIP_SENDER_H

#include "base/htab.h"
#include "ctf/watermark.h"
#include "ship/pace.h"
#include "ship/segment.h"
#include "ship/spool.h"
#include "ship/watch.h"

/* In the order in which they are sent. */
enum sender_kind {
	SENDER_OTHER, /* metadata and others */
	SENDER_INDEX,
	SENDER_STREAM,
	SENDER_KINDS
};

struct sender_file {
	struct ky_hnode node;	  /* by its path */
	struct sender_file *peer; /* the index of a stream, or the stream of an index; or NULL */
	enum sender_kind kind;
	char *path;	 /* from the trace's directory; owned */
	uint64_t counts; /* bytes that may be sent, when it was last looked at */
	uint64_t due; /* of these: may be sent now. An index: entries of packets that were sent */
	uint64_t sent, acked;
	uint64_t read;	/* metadata: bytes that were looked at */
	int64_t number; /* on this connection; -1: none */
	bool lost;	/* it was removed before it was sent */
	/* A spool only: */
	uint64_t released; /* a stream: the disk space of what is before is given back */
	struct spool_sum expired;
};

/* A directory in the trace's directory, which a rotation may move. */
struct sender_top {
	char name[256];
	int fd;
};

struct sender {
	int trace;			 /* borrowed */
	char name[SEGMENT_NAME_MAX + 1]; /* for the receiver's directory */
	uint8_t id[SEGMENT_ID_SIZE];
	bool once;	    /* sends what is there, also while it is recorded */
	bool is_refused;    /* some of the trace can never be sent; `why` says which */
	uint64_t chunk;	    /* the number of an archive; the caller sets it */
	uint64_t spool_max; /* bytes that may wait in the spool; 0: the directory is none */
	struct pace pace;   /* of the connection; the caller sets its rate */
	struct sender_top *tops;
	unsigned n_tops;
	struct sender_file **files,
		**numbered;   /* numbered: by their numbers, as many as have one */
	size_t n_files, room; /* room: of both */
	struct ky_htab by_path;
	struct watch watch; /* of all directories */
	struct ky_watermark watermark, sent_watermark;
	bool has_watermark;
	bool final;		    /* nothing will be added to the files */
	bool moved;		    /* because they have been moved: there may be others */
	uint64_t size;		    /* bytes that count, of all files */
	uint64_t acked;		    /* of these: the receiver has them */
	uint64_t n_lost;	    /* files that were removed before they were sent */
	uint64_t n_expired;	    /* events, of the spool; valid at the end */
	char why[SEGMENT_TEXT_MAX]; /* of a failure */
	/* Called when `acked` or `size` changed; may be NULL. */
	void (*progress)(struct sender *s);
};

/*
 * Looks at the trace's directory. Returns 0, -ENOENT if nothing is there yet, or -errno, with `why`
 * if is_refused. The caller calls sender_deinit() in each case.
 */
int sender_init(struct sender *s, int trace, const char *name, bool once);
/*
 * While there is no connection: looks how much there is to send, and keeps the spool's limit: what
 * waits too long expires. Returns 0 or -errno, with `why`.
 */
int sender_limit(struct sender *s);
/* Does a consumer hold the directory: is the session not destroyed yet? */
bool sender_is_recorded(int trace);
/*
 * The receiver has all of a recording that is over. Another sender need not connect for it: if the
 * mark cannot be written, it does, and finds that out.
 */
void sender_mark_shipped(const struct sender *s);
void sender_deinit(struct sender *s);
/*
 * Sends over a connected socket (borrowed) until the receiver has all. Returns 0, or -errno with
 * `why`: then try again with another connection, unless is_refused. -ECANCELED: the descriptor
 * `stop` became readable.
 */
int sender_run(struct sender *s, int fd, int stop);

#endif
