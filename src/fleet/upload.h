/* SPDX-License-Identifier: MIT */
/*
 * Ships a snapshot that is held here into the fleet's stream: each file as segments of the format
 * of `kymo ship` (docs/shipping.md), each under the subject of its file, then a manifest; a long
 * list of files is in several messages. How far a file is, the stream itself is asked: there is no
 * other record. A segment that is stored twice is harmless, because it has its place. If the stream
 * has lost some of it, the snapshot is shipped once more from its beginning, on request.
 */
#ifndef FLEET_UPLOAD_H
#define FLEET_UPLOAD_H

#include "fleet/held.h"

struct upload_file {
	size_t session; /* number */
	char *path;	/* from the session's directory; owned */
	uint64_t size;
	unsigned rank; /* metadata, then streams, then indexes */
};

struct upload {
	struct link *link;		   /* borrowed */
	const struct held *held;	   /* borrowed */
	const struct fleet_config *config; /* borrowed */
	char id[FLEET_ID_MAX + 1];
	char again[FLEET_ID_MAX + 1]; /* the request to ship it once more; or "" */
	struct kymo_value *manifest;  /* owned; NULL: nothing is under way */
	size_t n_listed, n_parts;     /* bytes of its list of files; messages with earlier files */
	struct upload_file *files;
	size_t n_files, file, session;
	int fd;		 /* of the file that is shipped; -1: it is not open yet */
	uint64_t offset; /* of the next segment */
	uint32_t crc;	 /* of the bytes before it */
	size_t n_sent;	 /* bytes of the last step's segment */
	/* For all segments: fresh memory would cost as much as the compression. Owned. */
	struct ZSTD_CCtx_s *zstd;
	uint8_t *raw, *message;
	char why[FLEET_WHY_MAX];
};

/* Borrows the arguments until upload_end(). */
void upload_init(
	struct upload *u, struct link *l, const struct held *h, const struct fleet_config *c);
/* Begins with a snapshot. Returns 0 or -errno, with `why`. */
int upload_begin(struct upload *u, const char *id);
static inline bool upload_is_begun(const struct upload *u)
{
	return u->manifest != NULL;
}
/* Ships one segment. Returns 1; 0 when all is stored; or -errno, with `why`: try again. */
int upload_step(struct upload *u);
void upload_end(struct upload *u);

#endif
