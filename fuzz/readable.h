/* SPDX-License-Identifier: MIT */
/* What the reader thinks of metadata; apart, because its headers and those of who writes metadata have names in common. */
#ifndef FUZZ_READABLE_H
#define FUZZ_READABLE_H

#include <stdbool.h>
#include <stddef.h>

bool is_readable(const char *text, size_t len);

#endif
