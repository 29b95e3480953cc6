/* SPDX-License-Identifier: MIT */
/*
 * Checks that the reader can read metadata. A separate file, because the headers of reader and
 * writer define the same names.
 */
#ifndef FUZZ_READABLE_H
#define FUZZ_READABLE_H

#include <stdbool.h>
#include <stddef.h>

bool is_readable(const char *text, size_t len);

#endif
