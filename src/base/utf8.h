/* SPDX-License-Identifier: MIT */
/* Text from others: the bounds of its characters, and which of them a terminal displays safely. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/util.h"

/*
 * Returns the length of the UTF-8 character at p, where n bytes are; 0 if there is none (surrogates
 * and overlong forms are none). Sets *ret_harmless if a terminal only displays it: it is no control
 * character and does not change the direction of writing.
 */
size_t ky_utf8_length(const char *p, size_t n, uint32_t *ret_code, bool *ret_harmless);
bool ky_utf8_valid(const char *p, size_t n);

#endif
