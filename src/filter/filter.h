/* SPDX-License-Identifier: MIT */
/*
 * Filters: an expression over an event's fields that says whether the event is recorded. man/kymo-filter.7 is
 * the language; docs/filter-program.md the bytes of a program.
 *
 *   text --compile--> program: names unresolved, no event known       (session daemon)
 *   program + an event's fields --link--> code: offsets and types      (traced program; daemon, to know whether it can)
 *   code + a payload --pass--> yes or no                               (traced program, for each event)
 *
 * Linking checks the whole program, which may come from anybody. Code has no backward jump, and each instruction's cost
 * is bounded: it looks at a payload's bytes at most once for each name in the expression, and at no more than
 * KY_FILTER_STRING_MAX bytes of a text.
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

/* What went wrong: for people, without "filter: ". */
struct ky_filter_error {
	unsigned
		position; /* character of the expression, from 1; 0: not known (ky_filter_position) */
	/* when linking: what it is about: a node, and which name of its path */
	unsigned node, component;
	char text[240];
};

enum ky_filter_type {
	KY_FILTER_ANY = 0, /* not known yet */
	KY_FILTER_SIGNED,
	KY_FILTER_UNSIGNED, /* 64 bits: what is shorter fits SIGNED */
	KY_FILTER_FLOAT,
	KY_FILTER_STRING,
};

/* A context that `$ctx.NAME` stands for; the functions are called when events are recorded, by any thread. */
struct ky_filter_context {
	enum ky_filter_type
		type;	      /* ANY: known when an event is recorded; then a number is a double */
	const void *argument; /* of the functions; code is the same for the same one */
	/* The value's bits, as this type (SIGNED, UNSIGNED, FLOAT). False: it has none. */
	bool (*number)(const void *argument, enum ky_filter_type type, uint64_t *ret_bits);
	/* Bytes written to buf, or -1. */
	int (*string)(const void *argument, char *buf, size_t size);
};

/* Finds a context by its name ("vpid", "$app.provider:name"); false: there is none. */
typedef bool (*ky_filter_find_context)(const char *name, struct ky_filter_context *ret);

/* Writes the expression's program to buf (KY_FILTER_PROGRAM_MAX). Its length, or -EINVAL and *error. */
int ky_filter_compile(
	const char *text, ky_filter_find_context find, uint8_t *buf, struct ky_filter_error *error);

/* Where in the expression lies what linking its program could not make use of, as *error says; from 1. */
unsigned ky_filter_position(const char *text, const struct ky_filter_error *error);

/*
 * Writes the program's code for events with these fields to buf (KY_FILTER_CODE_MAX, aligned to 8). The code may be
 * copied, and is the same bytes for the same program and fields; it ends at the returned length. -EBADMSG: no program;
 * -EINVAL: it does not fit the fields, as *error says; -ENOENT: likewise, because one that it names is not there.
 */
int ky_filter_link(const void *program, size_t len, const struct kymo_field *fields,
	ky_filter_find_context find, void *buf, struct ky_filter_error *error);

#endif
