/* SPDX-License-Identifier: MIT */
/*
 * Filters: an expression over an event's fields that decides whether the event is recorded.
 * man/kymo-filter.7 describes the language; docs/filter-program.md the bytes of a program.
 *
 *   step      from                        to                           where
 *   ----      ----                        --                           -----
 *   compile   text                        program: names are not       session daemon
 *                                         resolved, no event is known
 *   link      program, an event's fields  code: offsets and types      application; daemon, as a
 *                                                                      check
 *   pass      code, a payload             yes or no                    application, for each event
 *
 * Linking checks the whole program, which may come from any source. Code has no backward jump, and
 * the cost of each instruction is bounded: it reads a payload's bytes at most once for each name in
 * the expression, and at most KY_FILTER_STRING_MAX bytes of a text.
 */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <kymo/types.h>

#include "base/util.h"

#define KY_FILTER_TEXT_MAX    4096u /* characters of an expression */
#define KY_FILTER_NODES_MAX   256u  /* operators, names and constants */
#define KY_FILTER_DEPTH_MAX   32u   /* nesting */
#define KY_FILTER_STRING_MAX  4096u /* bytes of a text that are compared */
#define KY_FILTER_ANCHORS_MAX 32u   /* fields of variable size before one that is used */
#define KY_FILTER_CONTEXT_MAX 256u  /* bytes of a context that is a string */
#define KY_FILTER_PROGRAM_MAX 8192u
#define KY_FILTER_CODE_MAX    65536u

/* An error message for users, without "filter: ". */
struct ky_filter_error {
	/* character of the expression, from 1; 0: not known (ky_filter_position) */
	unsigned position;
	/* when linking: the node in question, and which name of its path */
	unsigned node, component;
	char text[240];
};

enum ky_filter_type {
	KY_FILTER_ANY = 0, /* not known yet */
	KY_FILTER_SIGNED,
	KY_FILTER_UNSIGNED, /* 64 bits: shorter ones fit SIGNED */
	KY_FILTER_FLOAT,
	KY_FILTER_STRING,
};

/* The context for `$ctx.NAME`. Any thread calls the functions when it records events. */
struct ky_filter_context {
	enum ky_filter_type
		type; /* ANY: known when an event is recorded; then a number is a double */
	/* argument of the functions; the same argument gives the same code */
	const void *argument;
	/*
	 * Returns the value's bits, as this type (SIGNED, UNSIGNED, FLOAT); false if it has none.
	 */
	bool (*number)(const void *argument, enum ky_filter_type type, uint64_t *ret_bits);
	/* Returns the number of bytes written to buf, or -1. */
	int (*string)(const void *argument, char *buf, size_t size);
};

/* Finds a context by its name ("vpid", "$app.provider:name"); returns false if there is none. */
typedef bool (*ky_filter_find_context)(const char *name, struct ky_filter_context *ret);

/*
 * Writes the expression's program to buf (KY_FILTER_PROGRAM_MAX). Returns its length, or -EINVAL
 * and *error.
 */
int ky_filter_compile(
	const char *text, ky_filter_find_context find, uint8_t *buf, struct ky_filter_error *error);

/* Returns the position, from 1, of the part of the expression to which a linking *error refers. */
unsigned ky_filter_position(const char *text, const struct ky_filter_error *error);

/*
 * Writes the program's code for events with these fields to buf (KY_FILTER_CODE_MAX, aligned to 8).
 * The code may be copied, and has the same bytes for the same program and fields. Returns its
 * length; -EBADMSG if the program is invalid; -EINVAL and *error if it does not match the fields;
 * -ENOENT and *error if it names a field that does not exist.
 */
int ky_filter_link(const void *program, size_t len, const struct kymo_field *fields,
	ky_filter_find_context find, void *buf, struct ky_filter_error *error);

#endif
