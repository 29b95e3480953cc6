/* SPDX-License-Identifier: MIT */
#include "reader/state.h"

#include <stdlib.h>
#include <string.h>

void ky_reader_warn(const struct ky_trace_reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ky_warn_to(&r->options, fmt, ap);
	va_end(ap);
}

void ky_warn_to(const struct ky_trace_reader_options *o, const char *fmt, va_list ap)
{
	char *text = NULL;

	if (!o->warn)
		return;
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	o->warn(o->arg, text ? text : "no memory");
	free(text);
}

int ky_reader_fail(struct ky_trace_reader *r, int error, const char *fmt, ...)
{
	va_list ap;

	if (!r->why[0]) {
		va_start(ap, fmt);
		vsnprintf(r->why, r->why_size, fmt, ap);
		va_end(ap);
	}
	return error;
}

int ky_reader_fail_memory(struct ky_trace_reader *r)
{
	return ky_reader_fail(r, -ENOMEM, "cannot read the trace: no memory");
}

void *ky_reader_grow(void *array, size_t *n, size_t size)
{
	void **at = array, *bigger = *at;

	if (!(*n & (*n - 1)))
		bigger = reallocarray(*at, *n ? 2 * *n : 1, size);
	if (!bigger)
		return NULL;
	*at = bigger;
	memset((char *)bigger + *n * size, 0, size);
	return (char *)bigger + (*n)++ * size;
}
