/* SPDX-License-Identifier: MIT */
/*
 * The metadata of a trace for reading it together with those of other hosts: with another offset of
 * its clock, which says that it is absolute, and with what is known of its error.
 */
#ifndef MERGE_CLOCK_H
#define MERGE_CLOCK_H

#include "base/buf.h"
#include "merge/offsets.h"

/* A note on the shift, for the metadata. Its texts have no quotation marks and backslashes. */
struct clock_note {
	const char *source; /* of the shift */
	/* names the clock that the error refers to; NULL: the first trace's */
	const char *reference;
};

/*
 * Appends the text with a clock that is shifted, and with the note, which replaces that of an
 * earlier call. Returns 0, or -EINVAL if this metadata was not written by Kymo, or -ERANGE.
 */
int clock_rewrite(struct ky_buf *to, const char *text, size_t len, const struct offset *o,
	const struct clock_note *note);

/*
 * Stores the time, since 1970, that records have in this trace when the clocks of its machine have
 * these values. Returns 0, -EINVAL or -ERANGE as above.
 */
int clock_time(const char *text, size_t len, uint64_t counter, uint64_t monotonic, int64_t *ret_ns);

#endif
