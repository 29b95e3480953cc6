/* SPDX-License-Identifier: MIT */
/*
 * Makes records of the trace from sub-buffers of the kernel's ring: the consumer's inner loop.
 *
 * A sub-buffer may be invalid, and is checked: no length or offset in it leads out of it. Steps
 * come from the session daemon, and are checked once (ky_kkind_new).
 */
#ifndef KERNEL_TRANSCODE_H
#define KERNEL_TRANSCODE_H

#include "filter/filter.h"
#include "kernel/program.h"
#include "kernel/threads.h"

#define KY_KKINDS (1u << 16) /* kernel's identifiers */

/* A kind of event that is recorded. */
struct ky_kkind {
	uint32_t id;	   /* in the trace */
	uint32_t min;	   /* bytes of data that the steps read for certain */
	uint32_t fixed;	   /* bytes of a record without what varies, at most */
	uint32_t n_varied; /* steps that copy at most all of the data */
	uint32_t n_stacks; /* steps for which the records behind the event are searched */
	/*
	 * fast: not 0: the fields begin with a copy of so many bytes, and the context before, if
	 * there is one, is a copy, too; `rest` are the steps behind these
	 */
	uint32_t fast, fast_offset, context, context_offset;
	const struct ky_kstep *rest;
	/* a record must pass one of these filters (filter/pass.h), if there are any */
	uint32_t n_filters;
	void **filters; /* owned */
	bool is_stack;
	uint32_t n_steps;
	struct ky_kstep steps[]; /* the last one has op 0 */
};

/* Returns NULL if the steps are invalid, or allocation fails. */
struct ky_kkind *ky_kkind_new(
	uint32_t id, uint32_t min, const struct ky_kstep *steps, uint32_t n_steps);
struct ky_kkind *ky_kkind_free(struct ky_kkind *k); /* NULL */
/*
 * Replaces the filters. fields: of the event in the trace. Returns 0, -EBADMSG if a program does
 * not match them, or -ENOMEM; then no filter is left, so that no event is missing.
 */
int ky_kkind_set_filters(struct ky_kkind *k, const struct kymo_field *fields,
	const struct ky_bytes *programs, uint32_t n);

struct ky_ktranscoder {
	struct ky_kkind **kinds; /* owned: KY_KKINDS pointers */
	struct ky_kthreads *threads;
	struct ky_kseen *seen; /* of the kernel's stacks; NULL: not wanted; borrowed */
	/*
	 * An event at the end of a sub-buffer waits there for the next one if its stacks are to
	 * come: KY_KERNEL_BEHIND bytes (abi/kernel.h) behind the sub-buffer are for this.
	 */
	bool waits;
};

/* Returns 0 or -ENOMEM. threads: borrowed. */
int ky_ktranscoder_init(struct ky_ktranscoder *t, struct ky_kthreads *threads);
void ky_ktranscoder_deinit(struct ky_ktranscoder *t);

/* The place in a sub-buffer and in the records. */
struct ky_kplace {
	uint32_t at;	  /* bytes of the sub-buffer that were transcoded; 0: none, or all */
	uint32_t waiting; /* offset of records that come before it; 0: none */
	uint64_t clock;	  /* there: of the records that wait, if there are any */
	uint64_t ts;	  /* of the last record */
	uint64_t count;	  /* records */
	uint64_t first_ts;
	uint64_t n_refused; /* records that could not be decoded */
};

/*
 * Bytes behind `end` that may be written, and behind the sub-buffer that may be read: copies are
 * whole vectors.
 */
#define KY_KCOPY_SLACK 32

/*
 * Appends records of the sub-buffer to `out`, up to `end`. Returns the place behind them.
 * place->at is 0 afterwards if the sub-buffer is complete. first: `out` is empty, so that a record
 * without room there will never have any. cpu: of the ring.
 * Events that wait come before the next sub-buffer, which may be empty.
 */
uint8_t *ky_ktranscode(struct ky_ktranscoder *t, struct ky_kplace *place, uint8_t *page,
	uint32_t size, uint32_t cpu, uint8_t *out, const uint8_t *end, bool first);
/* Writes the head of a record at the clock, or at place->ts if that is later. */
uint8_t *ky_kput_head(uint8_t *out, struct ky_kplace *place, uint32_t id, uint64_t clock);
#define KY_KHEAD_MAX 13

/* Finds a context for `$ctx.NAME` of the record that is being transcoded. */
bool ky_ktranscode_find_context(const char *name, struct ky_filter_context *ret);

#endif
