/* SPDX-License-Identifier: MIT */
/*
 * Segments: what a sender and a receiver of a trace exchange over a byte stream (docs/shipping.md).
 * Pure: bytes in, bytes out.
 */
#ifndef SHIP_SEGMENT_H
#define SHIP_SEGMENT_H

#include <stdbool.h>

#include "base/util.h"

#define SEGMENT_HEAD	    40u
#define SEGMENT_PAYLOAD_MAX (4u << 20)
#define SEGMENT_PATH_MAX    512u
#define SEGMENT_TEXT_MAX    256u
#define SEGMENT_ID_SIZE	    16u /* of a recording: random bytes */
#define SEGMENT_NAME_MAX    128u
#define SEGMENT_FILES_MAX   65535u
/* Flags in `offset` of HELLO: */
#define SEGMENT_SYNC	     1u /* what is acknowledged must be on the disk */
#define SEGMENT_NEVER_SILENT 2u /* the sender has ALIVE; in READY, too: the receiver has it */

enum segment_type {
	/* sender, first: identifier and name of the recording. offset: flags */
	SEGMENT_HELLO = 1,
	SEGMENT_HAVE,	   /* receiver: it has `offset` bytes of the file in the payload */
	SEGMENT_READY,	   /* receiver: all files were reported */
	SEGMENT_FILE,	   /* sender: the payload is the path of file `file`, numbered from 0 */
	SEGMENT_DATA,	   /* sender: bytes of `file` from `offset` on */
	SEGMENT_WATERMARK, /* sender: the contents of TRACE/.watermark */
	SEGMENT_ACK,	   /* receiver: it has `offset` bytes of `file` */
	SEGMENT_END,	   /* sender: that was all; receiver: all is on the disk */
	SEGMENT_ERROR,	   /* either: why the connection ends, in words */
	SEGMENT_ALIVE,	   /* sender, to a receiver that has it; receiver: the answer */
};

enum segment_codec {
	SEGMENT_PLAIN,
	SEGMENT_ZSTD,  /* DATA only */
	SEGMENT_ZEROS, /* DATA only: behind the payload, zeros up to the raw length */
};

struct segment {
	enum segment_type type;
	enum segment_codec codec;
	uint32_t length; /* of the payload */
	uint32_t raw;	 /* its length without codec; to encode SEGMENT_PLAIN, not needed */
	uint32_t file;	 /* number */
	uint64_t offset;
	uint32_t crc; /* of the payload without codec, and without zeros behind it */
};

/* Writes the head; the payload follows it. */
void segment_encode(const struct segment *s, uint8_t head[SEGMENT_HEAD]);
/*
 * Returns 0; -EPROTO: it is no head of a segment, or its payload is longer than such have; or
 * -EBADMSG: it was damaged on its way.
 */
int segment_decode(const uint8_t head[SEGMENT_HEAD], struct segment *s);

/* CRC-32C (Castagnoli), by the instruction of the processor where it has one (x86-64: SSE4.2). */
uint32_t segment_crc(const void *data, size_t n);
/* Returns the CRC of bytes a, and n_b bytes b behind them, from those of both. */
uint32_t segment_crc_join(uint32_t crc_a, uint32_t crc_b, uint64_t n_b);
/* The same without the instruction, and without the inversion at both ends: crc is the state. */
uint32_t segment_crc_by_table(uint32_t crc, const uint8_t *p, size_t n);

/*
 * Returns whether this is a path of a file of a trace: components of letters, digits and "-_+=@.:",
 * none of which begins with a dot, joined by '/'.
 */
bool segment_path_valid(const char *path, size_t n);
/* Likewise, of one component. */
bool segment_name_valid(const char *name, size_t n);

#endif
