/* SPDX-License-Identifier: MIT */
/*
 * Sources whose data can be read only once: one for each CPU.
 *
 *   kernel's buffer ── read ──▶ page ── transcode ──▶ blocks ── pieces ──▶ stream
 *                               └── memory that survives ──┘
 *
 * Reading destroys what was read. So the consumer reads a part of it, a page, into memory that
 * outlives it (abi/kernel.h), makes records in blocks of that memory, and publishes both by one
 * store. From there on a stream treats them as it treats a ring. A successor finishes the step that
 * was under way.
 *
 * struct once_ops reads, and makes the records: ftrace.c, perf.c.
 */
#ifndef CONSUMERD_SOURCE_ONCE_H
#define CONSUMERD_SOURCE_ONCE_H

#include "abi/kernel.h"
#include "consumerd/source/source.h"
#include "kernel/transcode.h"

struct once_set;

struct once_cpu {
	struct source source;
	struct once_set *set;
	uint32_t number;
	struct ky_kernel_cpu *mem; /* in the set's memory, as the others */
	uint8_t *blocks, *page;
};

struct once_ops {
	struct once_cpu *(*cpu)(struct once_set *s, uint32_t i);
	/* Reads and transcodes; flush: all of before now. Returns true if room is missing. */
	bool (*drain)(struct once_cpu *c, bool flush);
	/* Makes records of the page, as ky_ktranscode. */
	uint8_t *(*transcode)(struct once_cpu *c, struct ky_kplace *place, uint8_t *out,
		const uint8_t *end, bool first);
	/* Returns how many events were lost, ever, as the kernel counts them. */
	uint64_t (*count_lost)(struct once_cpu *c);
	/* Of a copy, as in source_ops. NULL: there are no copies. */
	uint64_t (*size_after)(struct once_cpu *c, uint64_t ts);
	uint64_t (*leave_out)(struct once_cpu *c, uint64_t ts);
	void (*free)(struct once_set *s); /* what is beside the memory, and the set itself */
};

struct once_set {
	struct source_set set;
	const struct once_ops *ops;
	void *memory; /* mapping; NULL: none */
	uint64_t memory_size;
	uint32_t n_cpus, page_size;
	uint64_t since; /* as each source has it */
};

/*
 * Initializes a set, and its CPUs, which ops->cpu knows by then. memory_fd: as for ftrace_new.
 * Returns 0 or -errno; once_free frees it in any case.
 */
int once_init(struct once_set *s, const struct once_ops *ops, uint32_t n_cpus, uint32_t page_size,
	int memory_fd);
void once_free(struct source_set *set);

static inline struct once_cpu *once_cpu_of(struct source *s)
{
	return ky_container_of(s, struct once_cpu, source);
}

static inline struct once_set *once_set_of(const struct source_set *set)
{
	return ky_container_of((struct source_set *)set, struct once_set, set);
}

/* Returns the published state. */
static inline const struct ky_kernel_slot *once_slot(const struct once_cpu *c)
{
	return &c->mem->slots[!!(c->mem->word & KY_KERNEL_SLOT)];
}

/* Returns true if records wait for what is read next. */
static inline bool once_has_waiting(const struct once_cpu *c)
{
	return once_slot(c)->page_at >> 32;
}

/* Publishes the slot by one store. A page that was being read is complete then. */
void once_publish(struct once_cpu *c, const struct ky_kernel_slot *slot);
/* Says whether a read is under way that destroys what it reads. */
void once_set_reading(struct once_cpu *c, bool reading);
/*
 * A page was read: it is to be transcoded from byte `at`. clock: of ky_kplace, at its begin.
 * n_lost: events that it reports as lost, if the source counts these.
 */
void once_enter_page(struct once_cpu *c, uint32_t at, uint64_t clock, uint64_t n_lost);
/* Transcodes the page, if there is one. Returns false if that needs more room. */
bool once_transcode_page(struct once_cpu *c);

/* For records that come from elsewhere: places in the blocks. */
uint8_t *once_block_data(const struct once_cpu *c, uint64_t pos);
/* Returns true if records at this position would overwrite some that are not taken. */
bool once_is_full(const struct once_cpu *c, uint64_t pos);
void once_end_block(const struct once_cpu *c, struct ky_kernel_slot *slot);
void once_load_place(struct ky_kplace *place, const struct ky_kernel_slot *slot);
void once_store_place(struct ky_kernel_slot *slot, const struct ky_kplace *place);

#endif
