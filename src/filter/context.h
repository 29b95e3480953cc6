/* SPDX-License-Identifier: MIT */
/* The contexts that filters can name: those of proto/context.h that consist of one value. */
#ifndef FILTER_CONTEXT_H
#define FILTER_CONTEXT_H

#include "filter/filter.h"
#include "proto/context.h"

/*
 * Finds the context by the name that readers show ("vpid", "perf_thread_page_faults"), or by
 * "$app.PROVIDER:NAME": its type, kind and argument (KY_CTX_SPEC_MAX). Returns false if there is
 * none. Does not change the functions in *ret.
 */
bool ky_filter_context_find(
	const char *name, struct ky_filter_context *ret, uint32_t *ret_kind, char *ret_argument);

#endif
