/* SPDX-License-Identifier: MIT */
/*
 * Compression of what is shipped, by zstd, while it is the link that is slow: while the sender
 * waits for it most of the time, and no more passes than zstd could compress.
 */
#ifndef SHIP_PACKER_H
#define SHIP_PACKER_H

#include <stdbool.h>

#include "base/util.h"

struct packer {
	void *zstd;		     /* owned; NULL before it is needed */
	uint64_t waited_ns, n_bytes; /* since begin_ns */
	uint64_t begin_ns;
	bool slow; /* is the link */
};

void packer_init(struct packer *p, uint64_t now_ns);
void packer_deinit(struct packer *p);
/* Counts n bytes that were sent, and the time that the sender waited until it could send. */
void packer_account(struct packer *p, uint64_t now_ns, uint64_t waited_ns, size_t n_bytes);
/* Returns how many bytes it stored in out[n]: 0 if the link is fast, or they would not be fewer. */
size_t packer_pack(struct packer *p, const void *bytes, size_t n, void *out);
/* Returns 0, or -EBADMSG: these are not n_raw compressed bytes. */
int packer_unpack(const void *packed, size_t n, void *raw, size_t n_raw);

#endif
