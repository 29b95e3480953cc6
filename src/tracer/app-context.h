/* SPDX-License-Identifier: MIT */
/*
 * Contexts that the application itself provides (<kymo/context.h>): named values, each from a
 * function of the application, which may be in a library that is unloaded. A value is recorded as
 * text.
 */
#ifndef TRACER_APP_CONTEXT_H
#define TRACER_APP_CONTEXT_H

#include <kymo/types.h>

struct app_context;

/*
 * Returns the context of this name, even if the application has not provided it yet. Returns NULL
 * if allocation fails. Called under the lock.
 */
struct app_context *app_context_get(const char *name);
/*
 * Writes its current value as text, "" if the application does not provide it: at most
 * KY_CTX_STRING_MAX bytes with the NUL. Returns the length.
 */
size_t app_context_read(struct app_context *c, char *text);
/*
 * Reads its current value. Returns its enum kymo_context_type, or 0 if the application does not
 * provide it. Copies a string to `text`, with the limit above, sets ret_value->string to that, and
 * *ret_len to its length. The caller cannot measure the copy: in a program with the memory
 * sanitizer, strlen() takes what the library has written for memory without a value.
 */
uint32_t app_context_value(
	struct app_context *c, union kymo_context_value *ret_value, char *text, size_t *ret_len);
/* Called in a forked child: threads of the parent that were inside do not exist there. */
void app_context_reset(void);

#endif
