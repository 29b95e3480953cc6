/* SPDX-License-Identifier: MIT */
/* The members of a JSON object that kymo has written: the fields of an event. */
#ifndef EXPORT_MEMBERS_H
#define EXPORT_MEMBERS_H

#include "base/buf.h"

struct ky_members {
	struct ky_buf name;
	const char *value; /* JSON; value_len bytes */
	size_t value_len;
	const char *end; /* of the object */
};

/* object: borrowed; NULL: there are none. */
void ky_members_begin(struct ky_members *m, const char *object, size_t len);
/* Goes to the next member. Returns false if there is none. */
bool ky_members_next(struct ky_members *m);
void ky_members_end(struct ky_members *m);
/* Appends the contents of a JSON string from p to before end, without its quotes. */
void ky_members_unescape(struct ky_buf *to, const char *p, const char *end);

#endif
