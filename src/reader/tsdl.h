/* SPDX-License-Identifier: MIT */
/*
 * The parser of TSDL, the text that describes a CTF 1.8 trace (tsdl.c), or of CTF 2 (ctf2.c). Pure.
 * The text is hostile input: depth is bounded, memory and time are linear in the length of the
 * text.
 */
#ifndef READER_TSDL_H
#define READER_TSDL_H

#include "reader/types.h"

/*
 * Parses len bytes of metadata, TSDL or CTF 2. If the text ends within a block behind the block of
 * the trace, the machine died while the text was written; the parser uses what is whole. Returns 0,
 * or -EINVAL with *error filled in. The caller calls ky_tsdl_deinit in any case.
 */
int ky_tsdl_parse(struct ky_tsdl *t, const char *text, size_t len, struct ky_tsdl_error *error);

#endif
