/* SPDX-License-Identifier: MIT */
/*
 * Fields by name: "size", "customer.name", "list[2]", "points[1].x". A path is resolved once for
 * each class of events. The value of an event is then found among its decoded values or, if its
 * place in the record is known, in the record.
 */
#ifndef READER_FIELD_H
#define READER_FIELD_H

#include "reader/cursor.h"

#define KY_FIELD_ANYWHERE UINT64_MAX

struct ky_field_ref {
	enum ky_scope scope;
	/* a field that is shown, no structure and no variant; NULL: the class has no such field */
	const struct ky_node *node;
	bool has_element; /* one number of an array, or one character */
	uint32_t element;
	uint32_t occurrence; /* of the node among the values: more than 0 in arrays of structures */
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
/*
 * Gets the field's value of an event. Returns false if it has none (another option of a variant, an
 * element behind the end).
 */
bool ky_field_get(struct ky_field_ref *f, const struct ky_item *item, struct ky_field_value *ret);

#endif
