/* SPDX-License-Identifier: MIT */
/*
 * Text of others: where its characters end, and which of them a terminal only shows.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/util.h"

/*
 * Length of the UTF-8 character at p, of which there are n bytes; 0 when there is none: no surrogates, no longer forms.
 * *ret_harmless tells whether a terminal shows it: no control character, none that turns the direction of writing.
 */
size_t ky_utf8_length(const char *p, size_t n, uint32_t *ret_code, bool *ret_harmless);
bool ky_utf8_valid(const char *p, size_t n);

#endif
