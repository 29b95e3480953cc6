/* SPDX-License-Identifier: MIT */
/*
 * Names for the text of CTF 1.8. A name of CTF 2 is any text; in CTF 1.8 it is an identifier that
 * no other member of the same structure has.
 */
#ifndef EXPORT_CTF_NAMES_H
#define EXPORT_CTF_NAMES_H

#include "base/buf.h"
#include "base/htab.h"

/* The names of one structure so far. Zeroed at first. */
struct ky_ctf_names {
	struct ky_htab taken; /* struct taken */
	unsigned number;      /* of the last name that got one */
};

/* Excludes a name. Returns 0 or -ENOMEM. */
int ky_ctf_names_take(struct ky_ctf_names *names, const char *name);
/*
 * Replaces *ret by the prefix and the name: other characters become '_', and a number follows if
 * the result is taken. NUL-terminated. It is taken then, and so is the same without the prefix:
 * readers hide one underscore, and babeltrace2 takes `_x` and a later `x` for the same. Returns 0
 * or -ENOMEM.
 */
int ky_ctf_names_choose(
	struct ky_ctf_names *names, struct ky_buf *ret, const char *prefix, const char *name);
void ky_ctf_names_deinit(struct ky_ctf_names *names);

#endif
