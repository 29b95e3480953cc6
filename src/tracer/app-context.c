/* SPDX-License-Identifier: MIT */
/*
 * A name has one entry, which lists hold and which is never freed. A thread counts itself into the
 * entry before it checks for a function and calls it. So once the count has been seen at 0, no
 * thread uses a function that was removed.
 */
#include "tracer/app-context.h"

#include <time.h>

#include "base/sys.h"
#include "base/text.h"
#include "proto/context.h"
#include "tracer/tracer.h"

#define ENTRIES_MAX 1024u

struct app_context {
	struct app_context *next;
	struct kymo_context *context; /* NULL: the application has none of this name */
	uint32_t users;
	char name[];
};

static struct {
	struct app_context *entries;
	uint32_t n;
} contexts KY_WRITTEN_EARLY;

struct app_context *app_context_get(const char *name)
{
	size_t len = strlen(name);
	struct app_context *c;

	for (c = contexts.entries; c; c = c->next)
		if (!strcmp(c->name, name))
			return c;
	c = contexts.n < ENTRIES_MAX ? tracer_alloc(sizeof(*c) + len + 1, false) : NULL;
	if (!c)
		return NULL;
	memcpy(c->name, name, len + 1);
	c->next = contexts.entries;
	contexts.entries = c;
	contexts.n++;
	return c;
}

/* Writes decimal digits before `end`. Returns their begin. */
static char *digits(char *end, uint64_t v)
{
	do {
		*--end = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return end;
}

static size_t put_integer(char *text, uint64_t magnitude, bool negative)
{
	char buf[24], *begin = digits(buf + sizeof(buf), magnitude);
	size_t n;

	if (negative)
		*--begin = '-';
	n = (size_t)(buf + sizeof(buf) - begin);
	memcpy(text, begin, n);
	text[n] = '\0';
	return n;
}

/*
 * Writes a double as text. C libraries do this on the stack, without lock or allocation, although
 * no standard guarantees it.
 */
static size_t put_double(char *text, double v)
{
	return snprintf(text, KY_CTX_STRING_MAX, "%.17g", v) > 0 ? ky_put_decimal_point(text) : 0;
}

/*
 * Copies a string. Another thread may change the text meanwhile: the copy still ends in a NUL.
 * Returns its length.
 */
static size_t copy_string(char *text, const char *s)
{
	size_t n = 0;

	for (; s && n < KY_CTX_STRING_MAX - 1; n++) {
		text[n] = __atomic_load_n(&s[n], __ATOMIC_RELAXED);
		if (!text[n])
			return n;
	}
	text[n] = '\0';
	return n;
}

uint32_t app_context_value(
	struct app_context *c, union kymo_context_value *ret_value, char *text, size_t *ret_len)
{
	struct kymo_context *context;
	uint32_t type = 0;

	/*
	 * Sequentially consistent: either kymo_app_context_remove sees this count, or this thread
	 * sees no function.
	 */
	__atomic_fetch_add(&c->users, 1, __ATOMIC_SEQ_CST);
	context = __atomic_load_n(&c->context, __ATOMIC_SEQ_CST);
	if (context) {
		memset(ret_value, 0, sizeof(*ret_value));
		type = context->type;
		context->get(context->data, ret_value);
		if (type == KYMO_CONTEXT_STRING) {
			*ret_len = copy_string(text, ret_value->string);
			ret_value->string = text;
		}
	}
	__atomic_fetch_sub(&c->users, 1, __ATOMIC_RELEASE);
	return type;
}

size_t app_context_read(struct app_context *c, char *text)
{
	union kymo_context_value v;
	size_t len;

	switch (app_context_value(c, &v, text, &len)) {
	case KYMO_CONTEXT_I64:
		return put_integer(text, v.i64 < 0 ? -(uint64_t)v.i64 : (uint64_t)v.i64, v.i64 < 0);
	case KYMO_CONTEXT_U64:
		return put_integer(text, v.u64, false);
	case KYMO_CONTEXT_F64:
		return put_double(text, v.f64);
	case KYMO_CONTEXT_STRING:
		return len;
	default:
		text[0] = '\0';
		return 0;
	}
}

static bool is_valid(const struct kymo_context *context)
{
	const char *colon = context->name ? strchr(context->name, ':') : NULL;

	return context->size >= sizeof(*context) && context->get && colon &&
	       colon != context->name && context->type >= KYMO_CONTEXT_I64 &&
	       context->type <= KYMO_CONTEXT_STRING && strlen(context->name) <= KY_NAME_MAX &&
	       ky_desc_name_valid(colon + 1);
}

static int register_context(struct kymo_context *context)
{
	struct app_context *c = app_context_get(context->name);

	if (!c)
		return -ENOMEM;
	if (c->context)
		return -EEXIST;
	__atomic_store_n(&c->context, context, __ATOMIC_SEQ_CST);
	return 0;
}

__attribute__((visibility("default"))) int kymo_app_context_add(struct kymo_context *context)
{
	sigset_t old;
	int r;

	if (!is_valid(context))
		return -EINVAL;
	tracer_lock(&old);
	r = register_context(context);
	tracer_unlock(&old);
	return r;
}

__attribute__((visibility("default"))) void kymo_app_context_remove(struct kymo_context *context)
{
	const struct timespec nap = {0, 100000};
	struct app_context *c;
	sigset_t old;

	tracer_lock(&old);
	for (c = contexts.entries; c && c->context != context; c = c->next)
		;
	if (c)
		__atomic_store_n(&c->context, NULL, __ATOMIC_SEQ_CST);
	tracer_unlock(&old);
	while (c && __atomic_load_n(&c->users, __ATOMIC_SEQ_CST))
		ky_sys_nanosleep(&nap);
}

void app_context_reset(void)
{
	for (struct app_context *c = contexts.entries; c; c = c->next)
		c->users = 0;
}
