/* SPDX-License-Identifier: MIT */
/*
 * Parser of the metadata of CTF 2: fragments of JSON, each behind a separator, to the same types
 * and blocks as TSDL. Called by ky_tsdl_parse only. Hostile input, as there.
 */
#ifndef READER_CTF2_H
#define READER_CTF2_H

#include "reader/types.h"

#define KY_CTF2_SEPARATOR '\x1e'

/* Returns true if the text is metadata of CTF 2, or of a draft without separators. */
bool ky_ctf2_is(const char *text, size_t len);
/* t is initialised. Returns 0, or -EINVAL with *error filled in. */
int ky_ctf2_parse(struct ky_tsdl *t, const char *text, size_t len, struct ky_tsdl_error *error);

#endif
