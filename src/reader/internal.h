/* SPDX-License-Identifier: MIT */
/* Reports of failures, and arrays that grow: the modules that open traces share them. */
#ifndef READER_INTERNAL_H
#define READER_INTERNAL_H

#include "reader/reader.h"

/* Formats a line and passes it to the reader's `warn`. */
void ky_reader_warn(const struct ky_trace_reader *r, const char *fmt, ...) KY_PRINTF(2, 3);
/* Stores the first reason why there is nothing to read. Returns error. */
int ky_reader_fail(struct ky_trace_reader *r, int error, const char *fmt, ...) KY_PRINTF(3, 4);
/* Stores that there is no memory. Returns -ENOMEM. */
int ky_reader_fail_memory(struct ky_trace_reader *r);
/*
 * Appends a zeroed element to an array of n elements; array: its address. Returns the element, or
 * NULL without memory.
 */
void *ky_reader_grow(void *array, size_t *n, size_t size);

#endif
