/* SPDX-License-Identifier: MIT */
/*
 * Filters (kymo-filter(7)) for events of traces: the expression is parsed and checked by
 * src/filter, and evaluated on decoded values, because records of other tracers have other bytes
 * than Kymo's payloads.
 */
#ifndef READER_EXPR_H
#define READER_EXPR_H

#include "filter/filter.h"
#include "reader/field.h"

#define KY_EXPR_PATH_MAX 512

struct ky_expr;

/* 0, -ENOMEM, or -EINVAL and *error. */
int ky_expr_new(struct ky_expr **ret_expr, const char *text, struct ky_filter_error *error);
/* One more user of the same. */
struct ky_expr *ky_expr_copy(const struct ky_expr *e);
/* NULL is fine. Returns NULL. */
struct ky_expr *ky_expr_free(struct ky_expr *e);
/* How many fields an expression has at most: the size of the array that is bound. */
size_t ky_expr_n_fields(const struct ky_expr *e);
/* Writes the path of field i of these. Returns false if there is none at i. */
bool ky_expr_field(const struct ky_expr *e, size_t i, char path[KY_EXPR_PATH_MAX]);
/* Finds the fields that the expression names. False if the class lacks one. */
bool ky_expr_bind(
	const struct ky_expr *e, const struct ky_event_class *event, struct ky_field_ref *fields);
enum ky_expr_mistake {
	KY_MISTAKE_TEXT,   /* a text is compared with a number, or by < */
	KY_MISTAKE_NUMBER, /* a number is compared with a text */
	KY_MISTAKE_LIST,   /* an array has no value, but its elements have */
};

/*
 * Returns true if the expression has no value because of the type of a field, and writes the
 * field's path. The fields are bound.
 */
bool ky_expr_mistakes_type(const struct ky_expr *e, const struct ky_field_ref *fields,
	char path[KY_EXPR_PATH_MAX], enum ky_expr_mistake *ret_mistake);
/* True if the expression is true for an event of the class that the fields were bound for. */
bool ky_expr_pass(const struct ky_expr *e, struct ky_field_ref *fields, const struct ky_item *item);

#endif
