/* SPDX-License-Identifier: MIT */
/*
 * Records of perf events as records of the trace: samples of what a CPU runs, and what says which
 * files the sampled processes have in memory. perf_event_open(2) and linux/perf_event.h define
 * perf's.
 *
 *   kymo_sample        {addr, period, callstack_kernel, callstack_user}   addr: what ran
 *   kymo_lib:map       {baddr, memsz, offset, path, has_build_id, build_id}
 *   kymo_lib:exec      {name}      the process runs another program, without its earlier files
 *   kymo_lib:fork      {parent}    the process begins with the files of its parent
 *
 * Each has the contexts tid and pid. The stacks have return addresses only, the innermost first.
 */
#ifndef KERNEL_PERF_RECORD_H
#define KERNEL_PERF_RECORD_H

#include "kernel/seen.h"
#include "kernel/transcode.h"

struct perf_event_attr;

#define KY_PERF_RING (512u << 10) /* bytes of records that any user may have for each CPU */

/*
 * Sets the attributes of an event that samples a process and its children from its next exec on.
 * The functions below read the records that this makes. hardware: cycles, else the kernel's timer.
 * monotonic: times are CLOCK_MONOTONIC's, else CLOCK_MONOTONIC_RAW's.
 */
void ky_perf_attr(struct perf_event_attr *ret, uint32_t frequency, bool hardware, bool kernel,
	bool monotonic);

/* For kernels before 5.12: files have no identity then, and symbols cannot be found. */
void ky_perf_attr_without_build_id(struct perf_event_attr *attr);

/* Appends the metadata of the records. Errors are text's. */
void ky_perf_describe(struct ky_buf *text, uint32_t stream_id);

/* Two readings of both clocks: of perf's in nanoseconds, and of the session's. */
struct ky_perf_times {
	uint64_t ns[2], clock[2];
};
/* Returns the session's clock at a time of perf's: on the line through both readings. */
uint64_t ky_perf_clock(const struct ky_perf_times *t, uint64_t ns);

/* A part of a perf ring: whole records follow. */
struct ky_perf_page {
	uint64_t len; /* bytes of records */
	struct ky_perf_times times;
	uint64_t reserved[3];
};

#define KY_PERF_PAGE_SIZE (128u << 10)

/*
 * Appends records of the page to `out`, up to `end`, of which an empty block has 128 KiB. Returns
 * the place behind them. place->at counts from the page's begin, and is 0 afterwards if the page is
 * complete; place->clock stays as it is. seen: notes the kernel's addresses; or NULL.
 */
uint8_t *ky_perf_transcode(struct ky_kplace *place, const uint8_t *page, uint8_t *out,
	const uint8_t *end, struct ky_kseen *seen);

#endif
