/* SPDX-License-Identifier: MIT */
/*
 * The 128 bytes in front of each packet of a stream file: packet header and packet context of
 * docs/trace-format.md, as one C structure. Written by the consumer, read back when it goes on
 * after a crash, and by the reader. Packets lie end to end, so a file can be walked from header to
 * header.
 */
#ifndef CTF_PACKET_H
#define CTF_PACKET_H

#include <assert.h>

#include "abi/ring.h"
#include "base/util.h"

#define KY_CTF_MAGIC	 0xc1fc1fc1u
#define KY_CTF_UUID_SIZE 16
/* Packets are padded, if at all, to the next multiple of this in the file. */
#define KY_CTF_PAGE 4096u

struct ky_ctf_packet {
	/* packet header */
	uint32_t magic;
	uint8_t uuid[KY_CTF_UUID_SIZE];
	uint32_t stream_id;
	uint64_t stream_instance_id; /* ring's index; above it, 0 or the number of its set */
	/* packet context; of a CPU's ring, or of one that threads have in turn */
	union {
		uint32_t cpu_id;
		struct ky_owner owner;
	};
	/* a gap for readers that go by the metadata */
	uint64_t position_begin;
	/* packet context */
	uint64_t timestamp_begin, timestamp_end;
	/* another gap */
	uint64_t n_events;
	uint64_t lost_too_big;
	/* packet context */
	uint64_t content_bits, packet_bits; /* this header included */
	uint64_t seq_num;
	uint64_t events_discarded;
};

static_assert(sizeof(struct ky_ctf_packet) == 128, "trace format");
static_assert(offsetof(struct ky_ctf_packet, stream_id) == 20, "trace format");
static_assert(offsetof(struct ky_ctf_packet, cpu_id) == 32, "trace format");
static_assert(offsetof(struct ky_ctf_packet, position_begin) == 56, "trace format");
static_assert(offsetof(struct ky_ctf_packet, n_events) == 80, "trace format");
static_assert(offsetof(struct ky_ctf_packet, timestamp_begin) == 64, "trace format");
static_assert(offsetof(struct ky_ctf_packet, content_bits) == 96, "trace format");
static_assert(offsetof(struct ky_ctf_packet, events_discarded) == 120, "trace format");
static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "trace format: written as it lies in memory");

/* Trace's UUID from the two halves of a message, as 16 bytes big endian. */
void ky_ctf_uuid(uint8_t uuid[KY_CTF_UUID_SIZE], uint64_t hi, uint64_t lo);
/* Fills in magic and sizes for n_bytes of records behind the header. */
void ky_ctf_packet_finish(struct ky_ctf_packet *p, uint32_t n_bytes);
/* Makes a finished packet longer, by less than KY_CTF_PAGE bytes behind its records. */
void ky_ctf_packet_pad(struct ky_ctf_packet *p, uint32_t n_bytes);
/* Ring position behind the last byte of its records. */
static inline uint64_t ky_ctf_packet_end(const struct ky_ctf_packet *p)
{
	return p->position_begin + p->content_bits / 8 - sizeof(*p);
}
/*
 * Size in bytes, header and padding included, of a packet read from a file; or -EBADMSG when it is
 * not one of the stream (uuid, stream_id, instance) that `like` belongs to, or its sizes and
 * positions contradict each other.
 */
int64_t ky_ctf_packet_check(const struct ky_ctf_packet *p, const struct ky_ctf_packet *like);

#endif
