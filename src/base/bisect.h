/* SPDX-License-Identifier: MIT */
/* Binary search in what is sorted. */
#ifndef BASE_BISECT_H
#define BASE_BISECT_H

#include "base/util.h"

/*
 * Stores in `ret`, a size_t, the first index below n for which is_before is false, or n. is_before
 * is an expression of `at`, an index; it is true up to some index, and false from there on.
 */
#define ky_bisect(ret, n, at, is_before)                                                           \
	do {                                                                                       \
		size_t end_ = (n);                                                                 \
                                                                                                   \
		(ret) = 0;                                                                         \
		while ((ret) < end_) {                                                             \
			size_t at = (ret) + (end_ - (ret)) / 2;                                    \
                                                                                                   \
			if (is_before)                                                             \
				(ret) = at + 1;                                                    \
			else                                                                       \
				end_ = at;                                                         \
		}                                                                                  \
	} while (0)

#endif
