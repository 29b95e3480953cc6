/* SPDX-License-Identifier: MIT */
/*
 * For the tests of filters: an event with a field of each kind, its records, and contexts. A record
 * is flat or in pieces. Each piece is memory of its own, so that the address sanitizer detects a
 * read beyond it.
 */
#ifndef FILTER_TEST_FIXTURE_H
#define FILTER_TEST_FIXTURE_H

#include "filter/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum layout { FLAT, PIECES, N_LAYOUTS };

struct record {
	enum layout layout;
	uint8_t scratch[4096];
	size_t len, begin; /* of the data that is not in a piece yet */
	struct kymo_piece pieces[64];
	size_t n_pieces;
	void *flat;
};

/* The event's fields. */
extern const struct kymo_field fields[];

/* The values of the fields that tests change. */
struct values {
	int8_t a;
	uint8_t b;
	int16_t c;
	uint16_t d;
	int32_t e;
	uint32_t f;
	int64_t g;
	uint64_t h;
	double y;
	int16_t behind;
	int16_t seq[2];
	uint64_t last;
	const char *name;
};

extern const struct values usual;

struct record *record_new(enum layout layout, const struct values *v);
void record_free(struct record *r);

/* Knows vpid, procname and the contexts of a program "shop". */
bool find_context(const char *name, struct ky_filter_context *ret);

extern uint64_t code[KY_FILTER_CODE_MAX / 8];

/* Fills code. Returns its size, or a negative errno with *error. */
int compile_and_link(const char *text, struct ky_filter_error *error);
/* Fills code, and returns the filter's verdict on the record. */
bool passes(const char *text, const struct record *r);

/* Returns a random number; each run has the same ones. */
uint64_t draw(void);

#endif
