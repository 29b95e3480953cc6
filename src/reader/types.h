/* SPDX-License-Identifier: MIT */
/* Types: the part that the parsers of TSDL and of CTF 2 share. */
#ifndef READER_TYPES_H
#define READER_TYPES_H

#include "reader/tsdl.h"

/*
 * Prepares the n labels and ranges of t, which is complete otherwise, to be looked up. Returns
 * false without memory.
 */
bool ky_type_index_labels(struct ky_tsdl *tsdl, struct ky_type *t);
/* The blocks are complete: sorts streams and events, and refuses identifiers that are there twice
 * and events of streams that are not. Returns false with a reason in error. */
bool ky_tsdl_finish(struct ky_tsdl *t, struct ky_tsdl_error *error);

#endif
