/* SPDX-License-Identifier: MIT */
#include "ship/packer.h"

#include <zstd.h>

#define LEVEL	   1
#define PERIOD_NS  UINT64_C(100000000)
#define FAST_NS	   16 /* for each byte: a link that takes less is not worth the work */
#define SHRINK_MIN 8  /* bytes; the system must not be made busy for less */

void packer_init(struct packer *p, uint64_t now_ns)
{
	*p = (struct packer){.begin_ns = now_ns};
}

void packer_deinit(struct packer *p)
{
	ZSTD_freeCCtx(p->zstd);
}

void packer_account(struct packer *p, uint64_t now_ns, uint64_t waited_ns, size_t n_bytes)
{
	const uint64_t passed_ns = now_ns - p->begin_ns;

	p->waited_ns += waited_ns;
	p->n_bytes += n_bytes;
	if (passed_ns < PERIOD_NS)
		return;
	p->slow = p->waited_ns > passed_ns / 2 && p->n_bytes < passed_ns / FAST_NS;
	p->waited_ns = p->n_bytes = 0;
	p->begin_ns = now_ns;
}

size_t packer_pack(struct packer *p, const void *bytes, size_t n, void *out)
{
	size_t packed;

	if (!p->slow || n <= SHRINK_MIN)
		return 0;
	if (!p->zstd)
		p->zstd = ZSTD_createCCtx();
	if (!p->zstd)
		return 0;
	packed = ZSTD_compressCCtx(p->zstd, out, n - SHRINK_MIN, bytes, n, LEVEL);
	return ZSTD_isError(packed) ? 0 : packed;
}

int packer_unpack(const void *packed, size_t n, void *raw, size_t n_raw)
{
	return ZSTD_decompress(raw, n_raw, packed, n) == n_raw ? 0 : -EBADMSG;
}
