/* SPDX-License-Identifier: MIT */
/*
 * One viewer's view of one trace directory that grows (docs/live.md): which streams there are,
 * and the next packet of each, in an order that a viewer can merge. It only reads files.
 *
 * The mark is the watermark up to which the viewer shows events. It is read before directories are
 * searched. So a stream that is found later has no record up to the mark before, and a viewer that
 * learns of it before anything beyond that mark can merge it. The mark advances only when the
 * viewer has heard of all streams that were found.
 *
 * A rotation moves files. The view keeps directories open, and opens files beneath them by name.
 */
#ifndef LIVE_VIEW_H
#define LIVE_VIEW_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/htab.h"
#include "ctf/packet.h"
#include "ctf/watermark.h"

#define VIEW_METADATA_MAX (16u << 20) /* of one reply */

struct view_file {
	char *name;   /* owned; of the stream file */
	uint64_t seq; /* packet_seq_num of its first packet */
};

struct view_stream {
	uint32_t trace;		 /* number */
	bool announced;		 /* the viewer knows it */
	bool damaged;		 /* what its files say makes no sense: nothing more is served */
	struct view_file *files; /* owned; by seq; none: the beacon */
	uint32_t n_files, file;	 /* all, and the one that is read */
	uint64_t next;		 /* entry of its index */
	uint64_t known;		 /* the viewer knows that nothing is before */
	/* The packet that the viewer may ask for. */
	int fd; /* owned; -1: none, or only `head`, an empty packet that is made up */
	uint64_t at, size;
	struct ky_ctf_packet head; /* of that packet, or of the stream's first one */
};

struct view_trace {
	char *path;	/* owned; from the trace's directory, for the viewer */
	int dir, index; /* owned */
	dev_t dev;
	ino_t ino;
	bool moved, seen; /* to an archive: nothing is added any more; found by this search */
	uint8_t uuid[KY_CTF_UUID_SIZE];
	uint64_t metadata_size; /* bytes; when it was looked at */
	uint64_t readable;	/* of these, whole declarations */
	uint64_t sent;		/* of these, what the viewer has */
	bool announced;		/* the viewer knows its metadata */
	struct ky_htab names;	/* of indexes that need not be looked at again */
};

struct view {
	int root; /* borrowed */
	bool searched;
	struct ky_watermark last; /* when it was searched last */
	uint64_t mark;
	bool over;		/* nothing will be added */
	uint64_t idle_since_ns; /* since then no process records into the directory; 0: one does */
	uint64_t last_archive;	/* number of the last archive that was searched */
	struct view_trace *traces; /* owned */
	struct view_stream *streams;
	uint32_t n_traces, n_streams, n_new; /* of these, the viewer does not know */
	uint64_t n_late;		     /* events that came too late to be shown in order */
	uint64_t n_damaged;		     /* streams of which nothing more is shown */
};

enum view_status {
	VIEW_OK = 1,
	VIEW_RETRY = 2,
	VIEW_HUNG_UP = 3,
	VIEW_INACTIVE = 5,
};

struct view_index {
	enum view_status status;
	bool new_metadata, new_streams;
	uint64_t offset, size, content_bits, begin, end, discarded;
	uint32_t class_id;
};

/*
 * from_start: also what is there already, with archives. root stays the caller's. Returns 0, or
 * -EMFILE, -ENFILE, -ENOMEM or -EIO; view_deinit() follows in any case.
 */
int view_init(struct view *v, int root, bool from_start);
void view_deinit(struct view *v);
/*
 * Looks for what is new. Call it before each of those that follow. Returns 0 or -errno, as
 * view_init(). Streams may move: a pointer to one is valid until the next call.
 */
int view_look(struct view *v);
/* Returns the next stream that the viewer does not know and could decode, or NULL. */
struct view_stream *view_next_new(struct view *v);
/* The viewer knows the stream now, and the metadata of its trace. */
void view_announce(struct view *v, struct view_stream *s);
/* Finds the next packet of a stream. */
void view_next_index(struct view *v, struct view_stream *s, struct view_index *ret);
/* Appends at most n bytes of the packet of the last index. Returns their number, or -errno. */
int64_t view_read(
	struct view *v, struct view_stream *s, uint64_t offset, uint32_t n, struct ky_buf *to);
/* Appends a packet of metadata that the viewer does not have. Returns its size; 0: none. */
int64_t view_read_metadata(struct view *v, struct view_trace *t, struct ky_buf *to);

#endif
