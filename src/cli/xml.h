/* SPDX-License-Identifier: MIT */
/*
 * Reads the XML of LTTng's session profiles into a tree: elements and their text. Attributes,
 * comments and declarations are skipped; other kinds of markup are refused.
 */
#ifndef CLI_XML_H
#define CLI_XML_H

#include <stddef.h>

#define XML_DEPTH_MAX 64 /* of elements in each other: the parser calls itself */

struct xml {
	char *name, *text; /* owned; text: of the element itself, without spaces around it */
	struct xml *next, *child;
};

/* Returns the root element, or NULL if the text is not such XML, or if there is no memory. */
struct xml *xml_parse(const char *text, size_t len);
void xml_free(struct xml *e);
/* Returns the first child of this name, or NULL. e may be NULL. */
const struct xml *xml_child(const struct xml *e, const char *name);
/* Returns the next element of the same name, or NULL. */
const struct xml *xml_next(const struct xml *e);
/* Returns the text of the child of this name; "" if there is none. */
const char *xml_text(const struct xml *e, const char *name);

#endif
