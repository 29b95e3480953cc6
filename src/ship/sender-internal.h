/* SPDX-License-Identifier: MIT */
/*
 * The parts of the sender: the trace and how much of it may be sent (sender-trace.c), packets of a
 * spool that expire (sender-spool.c), and the connection (sender.c), which uses both.
 */
#ifndef SHIP_SENDER_INTERNAL_H
#define SHIP_SENDER_INTERNAL_H

#include "base/util.h"
#include "ctf/index.h"

struct segment;
struct sender;
struct sender_file;

/* Stores the reason in `why`. Returns error. */
int sender_fail(struct sender *s, int error, const char *fmt, ...) KY_PRINTF(3, 4);

/* --- the trace: sender-trace.c --- */

/*
 * Finds or adds the file. Returns NULL, with `why`, if its path cannot be sent, if there are too
 * many files, or if there is no memory.
 */
struct sender_file *sender_file_get(struct sender *s, const char *path);
/* Opens a file through the directory that was opened at first, wherever that is now. */
int sender_file_open(const struct sender *s, const char *path);
void sender_file_lost(struct sender *s, struct sender_file *f);
void sender_read_watermark(struct sender *s);
/* Have the directories been moved, by a rotation, or removed? */
bool sender_is_moved(const struct sender *s);
/* Adds up `size` and `acked`. */
void sender_add_sizes(struct sender *s);
/*
 * Finds out what can be sent. final: nothing will be added; moved: because the directories have
 * been moved. Returns 0 or -errno, with `why`.
 */
int sender_look(struct sender *s, bool final, bool moved);

/* A stream and its index, open. */
struct packets {
	int stream, index;
	uint64_t n;
};

/* Returns false if one of them is not there. */
bool packets_open(const struct sender *s, const char *stream, struct packets *ret);
void packets_close(struct packets *p);
/* Reads the entry of packet i. Returns false if there is none. */
bool packets_read(const struct packets *p, uint64_t i, struct ky_index_entry *ret);
/* Returns the number of the first packet that ends behind `at`. */
uint64_t packets_find(const struct packets *p, uint64_t at);

/* --- a spool: sender-spool.c --- */

/*
 * The other end has the acknowledged bytes of the file on its disk: gives back the space of packets
 * whose entries are among them. Returns 0 or -errno, with `why`.
 */
int sender_release_acked(struct sender *s, const struct sender_file *index);
/* Adds the events that have expired to n_expired. */
void sender_add_expired(struct sender *s);
/* Changes bytes of any file into what is sent. Returns how many, 0 if they cannot be read. */
size_t sender_change(
	struct sender *s, struct sender_file *f, uint8_t *bytes, size_t n, struct segment *g);

#endif
