/* SPDX-License-Identifier: MIT */
/*
 * The packets of a walk: finds them, keeps the bytes of the current one, or of a piece of it, in
 * memory, and steps over what is damaged. For walk.c, which reads the records. Errors are kept in
 * the walk.
 */
#ifndef READER_WALK_PACKETS_H
#define READER_WALK_PACKETS_H

#include "reader/walk-state.h"

static inline struct ky_file *ky_walk_file(const struct ky_walk *w)
{
	return &w->stream->files[w->file];
}

/* Returns true if the slice may end in the current packet. */
static inline bool ky_walk_may_end_here(const struct ky_walk *w)
{
	const struct ky_place *end = w->end;

	if (!end || w->file != end->file)
		return end && w->file > end->file;
	return w->packet_offset >= end->offset;
}

/* Opens the packet at w->offset; steps over it if it is none. */
void ky_walk_open_packet(struct ky_walk *w);
/*
 * Reads the head of the current packet again, with the present layout. Returns 0, -EBADMSG or
 * -ENOMEM.
 */
int ky_walk_read_packet_again(struct ky_walk *w);
/* Goes to a bit of the current packet, of which the first bytes were read. */
void ky_walk_go_to_bit(struct ky_walk *w, uint64_t bit);
/*
 * Reads a larger piece of the packet, which begins with the record at that bit. d->pos and
 * w->record are then at it. The packet's context still refers to the first piece. Returns false if
 * there is no more. Hostile packets may all claim to reach to the end of the file: the file's size
 * limits how much is read in total.
 */
bool ky_walk_fetch_piece(struct ky_walk *w, uint64_t record);
/*
 * Leaves a packet whose rest cannot be read. If even its size is doubtful, searches for another
 * packet.
 */
void ky_walk_leave_damaged(struct ky_walk *w);
void ky_walk_drop_packet(struct ky_walk *w);
/* Ends the walk: what follows is not wanted. */
void ky_walk_end(struct ky_walk *w);
/*
 * Decodes the head of the packet at the offset of a file. w->d is then behind the head. For walks
 * that do not advance. Returns 0, -EBADMSG or -ENOMEM.
 */
int ky_walk_peek(struct ky_walk *w, size_t file, uint64_t offset, struct ky_packet_head *ret_head);
/*
 * Returns the next place in the file of the last ky_walk_peek, behind the offset of an invalid
 * head, where a packet may begin; or the file's size.
 */
uint64_t ky_walk_find_head(struct ky_walk *w, uint64_t offset);

#endif
