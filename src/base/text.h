/* SPDX-License-Identifier: MIT */
/* Text that users type or read: numbers, sizes, times, and similar names. No side effects. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/util.h"

#define KY_OBJECT_NAME_MAX 128
#define KY_DISTANCE_MAX	   511u

/* Parses a whole decimal number of at most max. Returns 0, -EINVAL, or -ERANGE. */
int ky_parse_number(const char *text, uint64_t max, uint64_t *ret_value);
/*
 * Parses "4096", "256K", "1M", "2G" (powers of 1024; lower case too) into bytes. Returns 0,
 * -EINVAL, or -ERANGE.
 */
int ky_parse_size(const char *text, uint64_t *ret_bytes);
/*
 * Parses "1000", "1000us", "20ms", "5s", "1m", "2h" (upper case too) into microseconds. Returns 0,
 * -EINVAL, or -ERANGE.
 */
int ky_parse_usec(const char *text, uint64_t *ret_usec);
/* The same, but a number without a unit means seconds: for times that people wait for. */
int ky_parse_seconds(const char *text, uint64_t *ret_usec);
/*
 * Returns the i-th unit of time, smallest first, and its microseconds; NULL if there are no more.
 */
const char *ky_unit_of_time(size_t i, uint64_t *ret_usec);
/*
 * Divides nanoseconds by 1000, until they are below the limit or are seconds. Returns the unit:
 * "ns", "us", "ms" or "s".
 */
const char *ky_scale_ns(double *ns, double limit);

/*
 * Real numbers have a dot, whatever locale the program sets: libraries are in programs of others.
 *
 * Parses a real number as strtod() does in the locale "C".
 */
double ky_parse_real(const char *text, char **ret_end);
/*
 * Replaces the decimal separator of the program's locale in a number that printf() has written.
 * Returns the length, which may be less than before.
 */
size_t ky_put_decimal_point(char *number);
/* The bytes that ky_format_real() needs at most. */
#define KY_REAL_TEXT 40
/*
 * Writes a number with the fewest digits that read back as the same; is_single: as the same float.
 * Returns the length.
 */
size_t ky_format_real(char text[KY_REAL_TEXT], double v, bool is_single);

/*
 * Returns true for a valid name of a session, channel or snapshot: 1 to KY_OBJECT_NAME_MAX letters,
 * digits, '.', '_', '-', not beginning with a dot.
 */
bool ky_name_valid(const char *name);
/*
 * Returns the number of edits from a to b (insert, delete or replace a character, or swap two
 * neighbours). More than `limit` edits, and texts of more than KY_DISTANCE_MAX bytes, count as
 * limit + 1.
 */
unsigned ky_edit_distance(const char *a, const char *b, unsigned limit);
/*
 * Returns the number of edits from a text to a name that it was probably meant to be: at most a
 * third of the name's letters, but at least one. Returns UINT_MAX if the name does not come near.
 */
unsigned ky_near_distance(const char *text, const char *name);

#endif
