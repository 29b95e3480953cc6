/* SPDX-License-Identifier: MIT */
/*
 * Layout of index/NAME.kyx (docs/trace-format.md, "Index"): a header, then one entry for each
 * packet of the stream file NAME, in order. A help for seeking only.
 */
#ifndef CTF_INDEX_H
#define CTF_INDEX_H

#include <assert.h>
#include <stdint.h>

#define KY_INDEX_MAGIC	 0x5849594bu /* "KYIX" */
#define KY_INDEX_VERSION 1

struct ky_ctf_packet;

struct ky_index_header {
	uint32_t magic, version;
	uint32_t entry_size;
	uint32_t reserved;
};

struct ky_index_entry {
	uint64_t offset, size; /* bytes in the stream file */
	uint64_t timestamp_begin, timestamp_end;
	uint64_t n_events;
	uint64_t discarded; /* so far */
};

static_assert(sizeof(struct ky_index_header) == 16, "trace format");
static_assert(sizeof(struct ky_index_entry) == 48, "trace format");

void ky_index_header_init(struct ky_index_header *h);
/* The entry of a finished packet at this offset of the stream file. */
void ky_index_entry_init(struct ky_index_entry *e, const struct ky_ctf_packet *p, uint64_t offset);

/* The offset of entry i in the index file. */
static inline uint64_t ky_index_offset(uint64_t i)
{
	return sizeof(struct ky_index_header) + i * sizeof(struct ky_index_entry);
}

#endif
