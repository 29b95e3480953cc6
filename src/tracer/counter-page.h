/* SPDX-License-Identifier: MIT */
/*
 * The page that the kernel keeps up to date for a counter (linux/perf_event.h): its value when it
 * was last put into the processor, and its place there. With it a thread reads its own counters
 * without a system call.
 *
 * The kernel changes the page of a thread's counter only where it interrupts that thread, and then
 * changes `lock` too. So if `lock` is the same before and after, the values that were read belong
 * together.
 */
#ifndef TRACER_COUNTER_PAGE_H
#define TRACER_COUNTER_PAGE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Reads the value of a counter of the calling thread. read_pmc(n) reads the processor's counter n,
 * which has pmc_width bits. Returns false if only the kernel can read it: the counter is not in the
 * processor, or shares its place there with others.
 */
static inline __attribute__((always_inline)) bool counter_page_read(
	const volatile struct perf_event_mmap_page *page, uint64_t (*read_pmc)(uint32_t n),
	uint64_t *ret_value)
{
	uint32_t lock, index, unused_bits;
	uint64_t value;

	do {
		lock = page->lock;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		index = page->index;
		if (!index || !page->cap_user_rdpmc || page->time_enabled != page->time_running)
			return false;
		unused_bits = 64u - page->pmc_width;
		value = (uint64_t)page->offset; /* it counts up from a negative number */
		value += (uint64_t)((int64_t)(read_pmc(index - 1) << unused_bits) >> unused_bits);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (page->lock != lock);
	*ret_value = value;
	return true;
}

#endif
