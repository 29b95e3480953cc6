/* SPDX-License-Identifier: MIT */
/*
 * The parser of CTF 2: what its parts share. It stops at the first error, which p->failed says;
 * functions then return NULL or any number, and do nothing more.
 */
#ifndef READER_CTF2_PARSE_H
#define READER_CTF2_PARSE_H

#include <json-c/json.h>

#include "reader/types.h"

typedef struct json_object json;

struct ky_ctf2 {
	struct ky_tsdl *tsdl;
	struct ky_tsdl_error *error;
	unsigned line; /* of the fragment */
	bool failed, has_preamble, has_trace;
	int depth;
	const struct ky_type **aliases;
	size_t n_aliases, cap_aliases;
	size_t cap_env, cap_clocks, cap_streams, cap_events;
};

/* --- errors and memory: ctf2-object.c --- */

/* Keeps the first error, at the line of the fragment. */
void KY_PRINTF(2, 3) ky_ctf2_fail(struct ky_ctf2 *p, const char *fmt, ...);
/* Returns n bytes of the arena, which are zero; NULL after an error. */
void *ky_ctf2_alloc(struct ky_ctf2 *p, size_t n);
/* Room for one more element, which is zero, in an array of the arena. NULL after an error. */
void *ky_ctf2_grow(struct ky_ctf2 *p, void *array, size_t *n, size_t *cap, size_t size);
/* Returns the one copy of a text; NULL after an error. */
const char *ky_ctf2_intern(struct ky_ctf2 *p, const char *text);
/* Remembers a name of an owner, and its number. Returns false if the owner had it. */
bool ky_ctf2_add_name(struct ky_ctf2 *p, const void *owner, const char *name, size_t number);

/* --- properties of objects: ctf2-object.c --- */

/* Returns a borrowed member; NULL if it is not there. */
json *ky_ctf2_member(json *o, const char *key);
/* The same, of this kind: an array, an object or a string. NULL after an error, too. */
json *ky_ctf2_kind(struct ky_ctf2 *p, json *o, const char *key, json_type kind);
/* Returns an interned text; NULL if it is not there. */
const char *ky_ctf2_text(struct ky_ctf2 *p, json *o, const char *key);
/* Returns an integer, in two's complement if it is negative. what: its name in messages. */
uint64_t ky_ctf2_number_of(struct ky_ctf2 *p, json *v, const char *what);
/* Returns a number from 0 to max; `missing` if it is not there. */
uint64_t ky_ctf2_number(
	struct ky_ctf2 *p, json *o, const char *key, uint64_t missing, uint64_t max);
/* Returns an alignment in bits, a power of two; `missing` if it is not there. */
uint32_t ky_ctf2_align(struct ky_ctf2 *p, json *o, const char *key, uint32_t missing);
/* A reader that does not know an extension must not go on: it is an error. */
void ky_ctf2_refuse_extensions(struct ky_ctf2 *p, json *o);

/* --- field classes: ctf2-types.c --- */

/* Returns the type of a field class, or of the name of an alias; NULL after an error. */
const struct ky_type *ky_ctf2_class(struct ky_ctf2 *p, json *o);
/* Returns the type of a scope of fields, which is a structure; NULL if it is absent. */
const struct ky_type *ky_ctf2_scope(struct ky_ctf2 *p, json *o, const char *key);
/* Gives a field class a name. */
void ky_ctf2_add_alias(struct ky_ctf2 *p, const char *name, json *class);

#endif
