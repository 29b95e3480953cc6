/* SPDX-License-Identifier: MIT */
/*
 * Binary messages: bytes in, bytes out, no sockets. A message is one SOCK_SEQPACKET datagram of at
 * most KY_MSG_MAX bytes: a header, then the fields of its table row in order, little endian as the
 * machine (both ends are on one machine), unaligned. Trailing bytes that a reader does not know are
 * skipped, unknown types too: a newer peer may append fields.
 *
 *   u8 u32 u64 i32   the integer
 *   later_u32        likewise; 0 if the message ends before it: a sender that does not know it
 *   str              u32 length without the NUL, the bytes, a NUL; no NUL inside
 *   bytes            u32 length, the bytes
 *   later_bytes      likewise; none if the message ends before them
 *
 * The reader never trusts a length; the first error sticks, and every later read gives zeros.
 * Decoded strings and bytes are borrowed from the message.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include "base/util.h"

#define KY_MSG_MAX	 65536u
#define KY_PROTO_VERSION 2u /* the version of our messages */
#define KY_PROTO_OLDEST	 2u /* the oldest version that we understand */

struct ky_msg_hdr {
	uint32_t len; /* of the whole message */
	uint16_t type;
	uint16_t reserved;
};

struct ky_bytes {
	const void *data;
	uint32_t len;
};

struct ky_writer {
	uint8_t *buf;
	size_t cap, len;
	int error; /* -EMSGSIZE when something did not fit */
};

struct ky_reader {
	const uint8_t *buf;
	size_t len, pos;
	int error; /* -EBADMSG when a read went beyond the end or a string was malformed */
};

/* Append to the message. If it has no room, they set w->error, and the message is useless. */
void ky_write_raw(struct ky_writer *w, const void *p, size_t n);
void ky_write_u8(struct ky_writer *w, uint8_t v);
void ky_write_u32(struct ky_writer *w, uint32_t v);
void ky_write_u64(struct ky_writer *w, uint64_t v);
void ky_write_i32(struct ky_writer *w, int32_t v);
void ky_write_str(struct ky_writer *w, const char *s);
void ky_write_bytes(struct ky_writer *w, struct ky_bytes b);

/* Return the next value, or 0 after an error. */
uint8_t ky_read_u8(struct ky_reader *r);
uint32_t ky_read_u32(struct ky_reader *r);
uint32_t ky_read_later_u32(struct ky_reader *r);
uint64_t ky_read_u64(struct ky_reader *r);
int32_t ky_read_i32(struct ky_reader *r);
const char *ky_read_str(struct ky_reader *r); /* never NULL: "" after an error */
struct ky_bytes ky_read_bytes(struct ky_reader *r);
struct ky_bytes ky_read_later_bytes(struct ky_reader *r);

/* Starts a message of this type in w (which must be empty); ky_msg_end fills in the length. */
void ky_msg_begin(struct ky_writer *w, uint16_t type);
/* Returns the message's length, or w->error. */
int ky_msg_end(struct ky_writer *w);
/*
 * Opens the message in buf: sets *r to its fields and returns its type (> 0), or -EBADMSG when the
 * header does not fit the datagram.
 */
int ky_msg_open(struct ky_reader *r, const void *buf, size_t len);

/*
 * A table of fields describes each message once, and a table of messages describes each protocol:
 *
 *   #define KY_APP_ACK_FIELDS(F) F(u32, cookie) F(i32, status)
 *   #define KY_APP_MESSAGES(M) M(ky_app_ack, KY_APP_ACK, KY_APP_ACK_FIELDS) ...
 *   KY_APP_MESSAGES(KY_MSG_DECLARE)   in the header
 *   KY_APP_MESSAGES(KY_MSG_DEFINE)    in one source
 *
 * This declares and defines struct ky_app_ack, int ky_app_ack_encode(w, &m), which returns the
 * message's length or -EMSGSIZE, and int ky_app_ack_decode(r, &m), which returns 0 or -EBADMSG.
 */
#define KY_WIRE_TYPE_u8		   uint8_t
#define KY_WIRE_TYPE_u32	   uint32_t
#define KY_WIRE_TYPE_later_u32	   uint32_t
#define KY_WIRE_TYPE_u64	   uint64_t
#define KY_WIRE_TYPE_i32	   int32_t
#define KY_WIRE_TYPE_str	   const char *
#define KY_WIRE_TYPE_bytes	   struct ky_bytes
#define KY_WIRE_TYPE_later_bytes   struct ky_bytes
#define KY_WIRE_MEMBER(type, name) KY_WIRE_TYPE_##type name;
#define KY_WIRE_WRITE(type, name)  ky_write_##type(w, m->name);
#define KY_WIRE_READ(type, name)   m->name = ky_read_##type(r);

#define ky_write_later_u32   ky_write_u32
#define ky_write_later_bytes ky_write_bytes

#define KY_MSG_DECLARE(msg, TYPE, FIELDS)                                                          \
	struct msg {                                                                               \
		FIELDS(KY_WIRE_MEMBER)                                                             \
	};                                                                                         \
	int msg##_encode(struct ky_writer *w, const struct msg *m);                                \
	int msg##_decode(struct ky_reader *r, struct msg *m);

#define KY_MSG_DEFINE(msg, TYPE, FIELDS)                                                           \
	int msg##_encode(struct ky_writer *w, const struct msg *m)                                 \
	{                                                                                          \
		ky_msg_begin(w, TYPE);                                                             \
		FIELDS(KY_WIRE_WRITE)                                                              \
		(void)m;                                                                           \
		return ky_msg_end(w);                                                              \
	}                                                                                          \
	int msg##_decode(struct ky_reader *r, struct msg *m)                                       \
	{                                                                                          \
		FIELDS(KY_WIRE_READ)                                                               \
		(void)m;                                                                           \
		return r->error;                                                                   \
	}

#endif
