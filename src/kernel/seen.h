/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the kernel in the stacks of records, so that the trace can have their symbols. The
 * transcoder notes each; a small table keeps those out that it has noted already, most of the time.
 */
#ifndef KERNEL_SEEN_H
#define KERNEL_SEEN_H

#include "base/util.h"

#define KY_KSEEN_BITS 12

struct ky_kseen {
	uint64_t known[1u << KY_KSEEN_BITS];
	uint64_t fresh[1u << KY_KSEEN_BITS]; /* n_fresh of them: the owner takes them away */
	uint32_t n_fresh;
};

/* Notes an address; not if there is no room, but then it comes again. */
static inline void ky_kseen_add(struct ky_kseen *s, uint64_t address)
{
	uint64_t *known = &s->known[address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - KY_KSEEN_BITS)];

	if (ky_likely(*known == address) || s->n_fresh == KY_ARRAY_SIZE(s->fresh))
		return;
	*known = address;
	s->fresh[s->n_fresh++] = address;
}

#endif
