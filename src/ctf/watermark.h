/* SPDX-License-Identifier: MIT */
/*
 * Layout of TRACE/.watermark (docs/trace-format.md, "Watermark"): how far a trace that is still
 * recorded can be read.
 */
#ifndef CTF_WATERMARK_H
#define CTF_WATERMARK_H

#include <assert.h>
#include <stdint.h>

#define KY_WATERMARK_NAME  ".watermark"
#define KY_MOVING_NAME	   ".moving"	 /* beside it: a chunk on its way into archives */
#define KY_WATERMARK_ENDED ((uint64_t)1) /* nothing will be recorded into the trace any more */

struct ky_watermark {
	uint64_t clock; /* all records up to this clock are in files; UINT64_MAX at the end */
	uint64_t chunk; /* the number of the present chunk: how many were rotated or cleared */
	uint64_t flags;
};

static_assert(sizeof(struct ky_watermark) == 24, "trace format");

#endif
