/* SPDX-License-Identifier: MIT */
/*
 * Fields by name: "size", "customer.name", "list[2]", "points[1].x", "matrix[1][2]". A path is
 * resolved once for each class of events. The value of an event is then found among its decoded
 * values or, if its place in the record is known, in the record.
 *
 * An option without a name has the path of its variant: "v" is the value of the optional field v.
 * Names in CTF 2 are any text: if "a.b" could also be the member b of a, "a\.b" is the other one.
 */
#ifndef READER_FIELD_H
#define READER_FIELD_H

#include "reader/cursor.h"

#define KY_FIELD_ANYWHERE UINT64_MAX
/* How many arrays a path may lead through. */
#define KY_FIELD_MAX_OUTER 8

/* An element of an array whose elements have values of their own. */
struct ky_field_outer {
	const struct ky_node *array;
	uint32_t index;
};

struct ky_field_ref {
	enum ky_scope scope;
	/*
	 * a field that is shown, no structure and no variant, and the first one that has this path;
	 * NULL: the class has no such field
	 */
	const struct ky_node *node;
	/* of ky_field_find_whole: the structure or variant whose first value is that of the node */
	const struct ky_node *whole;
	bool is_whole;
	bool has_element; /* one number of an array, or one character */
	uint32_t element;
	/* the elements that the field is in, the outermost first */
	struct ky_field_outer outer[KY_FIELD_MAX_OUTER];
	uint32_t n_outer;
	size_t guess;	/* index of the value in the last event, from the scope's first value on */
	uint64_t place; /* bits from the body of the record on, or KY_FIELD_ANYWHERE */
};

/* The value of a field. */
struct ky_field_value {
	const struct ky_value *v;
	const uint8_t *data;
	struct ky_value storage;
};

/*
 * Finds the field of that name in a class: first among its fields, then among contexts; behind
 * "$ctx." among contexts only. False, and node is NULL, if there is none.
 */
bool ky_field_find(struct ky_field_ref *ret, const struct ky_event_class *e, const char *path);
/* Likewise; but if the path leads to a structure or variant, finds it as a whole. */
bool ky_field_find_whole(
	struct ky_field_ref *ret, const struct ky_event_class *e, const char *path);
/* Returns whether the name of a member has characters that have a meaning in paths. */
bool ky_field_is_special(const struct ky_node *n);
/*
 * Gets the field's value of an event. Returns false if it has none (another option of a variant, an
 * element behind the end).
 */
bool ky_field_get(struct ky_field_ref *f, const struct ky_item *item, struct ky_field_value *ret);

#endif
