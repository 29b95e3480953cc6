/* SPDX-License-Identifier: MIT */
/*
 * Translates the filters of rules into filters of the kernel. The kernel gets a condition that each
 * wanted event meets; if it cannot express all of a filter, the consumer decides the rest. So the
 * kernel never drops an event that a rule wants.
 *
 *   A && B   what can be translated of either
 *   A || B   only if both can be
 *   !A       only if A can be, exactly
 */
#ifndef KERNEL_FILTER_H
#define KERNEL_FILTER_H

#include "base/buf.h"
#include "filter/filter.h"
#include "kernel/program.h"

#define KY_KFILTER_MAX 4096 /* bytes with the NUL: the kernel's limit */

struct ky_kfilter {
	char kernel[KY_KFILTER_MAX]; /* for the event's `filter` file; "": none */
	bool exact;		     /* nothing is left for the consumer */
	char rest[KY_KFILTER_MAX];   /* what is left, for users; "": nothing */
};

/*
 * Translates the filters (ky_kfilter_resolve) of the rules that match the event. It records an
 * event that passes any of them. n is not 0.
 */
void ky_kfilter_translate(struct ky_kfilter *ret, const struct ky_kprogram *p,
	const struct ky_buf *programs, uint32_t n);
/*
 * Copies a program, with numbers for the names of values: for a text that is compared with an
 * integer ("S", "O_CREAT|O_TRUNC"), and for a name that is no field of the event (O_CREAT). A name
 * that means nothing stays as it is: linking explains it. format: the kernel's text.
 * Returns 0, or -errno; -EINVAL with *error if the text names no value of its field.
 */
int ky_kfilter_resolve(struct ky_buf *ret, struct ky_bytes program, const struct ky_kprogram *p,
	const char *format, struct ky_filter_error *error);
/* Finds a context that filters of kernel events can name: for ky_filter_compile. */
bool ky_kfilter_find_context(const char *name, struct ky_filter_context *ret);

#endif
