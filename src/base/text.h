/* SPDX-License-Identifier: MIT */
/* Text that people type: numbers, sizes, times, and names that come near. Pure. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/util.h"

#define KY_OBJECT_NAME_MAX 128
#define KY_DISTANCE_MAX	   511u

/* A whole decimal number of at most max. 0, -EINVAL, or -ERANGE. */
int ky_parse_number(const char *text, uint64_t max, uint64_t *ret_value);
/* "4096", "256K", "1M", "2G" (powers of 1024; lower case too) into bytes. 0, -EINVAL, or -ERANGE. */
int ky_parse_size(const char *text, uint64_t *ret_bytes);
/* "1000", "1000us", "20ms", "5s", "1m", "2h" (upper case too) into microseconds. 0, -EINVAL, or -ERANGE. */
int ky_parse_usec(const char *text, uint64_t *ret_usec);
/* The i-th unit of time, the smallest first, and its microseconds; NULL: there are no more. */
const char *ky_unit_of_time(size_t i, uint64_t *ret_usec);

/* Names of sessions, channels and snapshots: 1 to KY_OBJECT_NAME_MAX letters, digits, '.', '_', '-', and no dot first. */
bool ky_name_valid(const char *name);
/*
 * Number of edits (insert, delete, replace a character, or swap two neighbours) that lead from a to b. More than `limit`,
 * and texts of more than KY_DISTANCE_MAX bytes, count as limit + 1.
 */
unsigned ky_edit_distance(const char *a, const char *b, unsigned limit);

#endif
