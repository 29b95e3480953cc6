/* SPDX-License-Identifier: MIT */
/*
 * Names as numbers: of events, spans, fields, threads, and texts of fields. Number 0 is no name.
 * Texts are cut at KY_TEXTS_LENGTH; after KY_TEXTS_MAX of them, new ones are "(other)".
 */
#ifndef ANALYSIS_TEXTS_H
#define ANALYSIS_TEXTS_H

#include "base/htab.h"
#include "base/vec.h"

#define KY_TEXTS_LENGTH 256
#define KY_TEXTS_MAX	((size_t)1 << 20)

struct ky_text;

struct ky_texts {
	struct ky_htab table;
	KY_VEC(struct ky_text *) all; /* owned; by number, from 1 */
	int error;		      /* 0 or -ENOMEM; sticks */
};

/*
 * Returns the number of the text, which is truncated to KY_TEXTS_LENGTH bytes. Returns that of
 * "(other)" if there are KY_TEXTS_MAX texts, and 0 if the text is empty, or with `error` set.
 */
uint32_t ky_texts_add(struct ky_texts *names, const char *text, size_t n);
/* NUL-terminated; "" for 0. */
const char *ky_texts_get(const struct ky_texts *names, uint32_t name);
/* Whether a text has this ending, and more before it: its length without the ending. */
bool ky_texts_end_in(const char *text, const char *ending, size_t *ret_len);
void ky_texts_deinit(struct ky_texts *names);

#endif
