/* SPDX-License-Identifier: MIT */
/*
 * JSON where there may be no memory: json-c's functions give NULL then, and those that add to an object end the
 * process when they get it. Those that build leave the value out, and count that: who uses the text asks.
 */
#ifndef SESSIOND_CONTROL_JSON_H
#define SESSIOND_CONTROL_JSON_H

#include <stdbool.h>

#include <json-c/json.h>

/*
 * value: consumed, and freed if there is no memory left: so it is added when it is complete. NULL, like o and list, if
 * there was no memory for it.
 */
void json_add(struct json_object *o, const char *name, struct json_object *value);
void json_append(struct json_object *list, struct json_object *value);

/* Was anything left out since this was asked last with the same word, which begins as 0? */
bool json_is_incomplete(unsigned int *seen);

/*
 * An object that is all of a text of len bytes (and a NUL), of so many levels at most; NULL when it is none, says a name twice, or there was no
 * memory for all of it: json-c itself would leave out what it finds none for, or end the process.
 */
struct json_object *json_parse(const char *text, size_t len, int max_depth);

#endif
