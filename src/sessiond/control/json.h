/* SPDX-License-Identifier: MIT */
/*
 * JSON when memory may run out. json-c's functions return NULL then, and those that add to an
 * object end the process when they get NULL. The functions here leave the value out, and count
 * that. The user of the text must check the count.
 */
#ifndef SESSIOND_CONTROL_JSON_H
#define SESSIOND_CONTROL_JSON_H

#include <stdbool.h>

#include <json-c/json.h>

/*
 * Adds the value, and consumes it: frees it if there is no memory left. So add a value when it is
 * complete. value, o and list may be NULL, if there was no memory for them.
 */
void json_add(struct json_object *o, const char *name, struct json_object *value);
void json_append(struct json_object *list, struct json_object *value);
/* Appends a string that the list does not have. A callback: list is a struct json_object. */
void json_append_text(void *list, const char *text);

/* Was anything left out since this was asked last with the same word, which begins as 0? */
bool json_is_incomplete(unsigned int *seen);

/*
 * Parses an object that is all of a text of len bytes (and a NUL), of at most max_depth levels.
 * Returns NULL if the text is no object, has a name twice, or there was no memory for all of it. In
 * the last case json-c itself would leave a part out, or end the process.
 */
struct json_object *json_parse(const char *text, size_t len, int max_depth);

#endif
