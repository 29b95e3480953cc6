/* SPDX-License-Identifier: MIT */
/*
 * Keys of events, made of the values of fields: "name", "process", "thread", "cpu", "stream", or
 * any field or context.
 */
#ifndef ANALYSIS_KEYS_H
#define ANALYSIS_KEYS_H

#include "base/buf.h"
#include "reader/field.h"

#define KY_KEYS_MAX 8
#define KY_KEY_TEXT_MAX                                                                            \
	((size_t)64 << 10) /* bytes of a key; few bytes of a trace may be any text */

struct ky_key_part {
	enum { KY_KEY_NAME, KY_KEY_STREAM, KY_KEY_FIELD } kind;
	bool is_mixed;		       /* the classes show equal numbers in different ways */
	struct ky_field_ref *of_class; /* owned; by the index of the class */
};

struct ky_keys {
	struct ky_key_part parts[KY_KEYS_MAX];
	size_t n_parts;
	/*
	 * The last one that was made, as text shows values, but that equal numbers are equal texts,
	 * and others are not: all digits of fractions, and base 10 where the base is mixed.
	 */
	struct ky_buf key;
	bool is_too_long; /* there is none, because it would have more than KY_KEY_TEXT_MAX */
	char *unknown;	  /* owned; name of a field that no class has, or NULL */
};

/*
 * Finds the field that a name stands for in a class: "process", "thread", "cpu", a field or a
 * context. Returns false if the class has none.
 */
bool ky_keys_find(struct ky_field_ref *ret, const struct ky_event_class *e, const char *name);
/*
 * names: with separators between them. Returns 0, -EINVAL if one is empty or there are too many,
 * -ENOENT if `unknown` is the name of a field that no class has, or -ENOMEM. The caller calls
 * ky_keys_deinit in any case.
 */
int ky_keys_init(
	struct ky_keys *k, const struct ky_trace_reader *r, const char *names, char separator);
void ky_keys_deinit(struct ky_keys *k);
/*
 * Makes the key of an event: "-" in the place of a field that it does not have. Returns false if
 * any is missing, or the key is too long. key.error: no memory.
 */
bool ky_keys_make(struct ky_keys *k, const struct ky_item *item);

#endif
