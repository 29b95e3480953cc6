/* SPDX-License-Identifier: MIT */
/*
 * Contexts that the program itself provides (<kymo/context.h>): named values, each from a function of the program's, which
 * may be in a library that is unloaded. A value is recorded as text.
 */
#ifndef TRACER_APP_CONTEXT_H
#define TRACER_APP_CONTEXT_H

#include <kymo/types.h>

struct app_context;

/* The context of this name, whether the program has it or not yet; NULL without memory. Under the lock. */
struct app_context *app_context_get(const char *name);
/* Its value now as text, "" while the program has none; at most KY_CTX_STRING_MAX bytes with the NUL. Returns the length. */
size_t app_context_read(struct app_context *c, char *text);
/*
 * Its value now, and enum kymo_context_type of it; 0 while the program has none. A string is copied to `text`, which is
 * as above, and ret_value->string is that.
 */
uint32_t app_context_value(struct app_context *c, union kymo_context_value *ret_value, char *text);
/* In a forked child: the threads that were inside are not there. */
void app_context_reset(void);

#endif
