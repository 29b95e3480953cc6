/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <locale.h>
#include <strings.h>

int ky_parse_number(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t v = 0;
	unsigned digit;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		digit = (unsigned)(*text - '0');
		if (digit > max || v > (max - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*ret_value = v;
	return 0;
}

/* Parses the first `len` characters as a number, and multiplies it. */
static int parse_scaled(const char *text, size_t len, uint64_t factor, uint64_t *ret_value)
{
	char digits[24];
	int ret;

	if (len >= sizeof(digits))
		return -ERANGE;
	memcpy(digits, text, len);
	digits[len] = '\0';
	ret = ky_parse_number(digits, UINT64_MAX / factor, ret_value);
	if (!ret)
		*ret_value *= factor;
	return ret;
}

int ky_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char suffixes[] = "KMG";
	size_t len = strlen(text);
	const char *suffix = len ? strchr(suffixes, toupper((unsigned char)text[len - 1])) : NULL;

	return suffix ? parse_scaled(text, len - 1, UINT64_C(1024) << 10 * (suffix - suffixes),
				ret_bytes)
		      : parse_scaled(text, len, 1, ret_bytes);
}

static const struct {
	const char *name;
	uint64_t usec;
} units_of_time[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}};

const char *ky_unit_of_time(size_t i, uint64_t *ret_usec)
{
	if (i >= KY_ARRAY_SIZE(units_of_time))
		return NULL;
	*ret_usec = units_of_time[i].usec;
	return units_of_time[i].name;
}

const char *ky_scale_ns(double *ns, double limit)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	size_t i = 0;

	for (; (*ns >= limit || *ns <= -limit) && i + 1 < KY_ARRAY_SIZE(units); i++)
		*ns /= 1000;
	return units[i];
}

int ky_parse_usec(const char *text, uint64_t *ret_usec)
{
	size_t len = strspn(text, "0123456789");

	if (!text[len])
		return parse_scaled(text, len, 1, ret_usec);
	for (size_t i = 0; i < KY_ARRAY_SIZE(units_of_time); i++)
		if (!strcasecmp(text + len, units_of_time[i].name))
			return parse_scaled(text, len, units_of_time[i].usec, ret_usec);
	return -EINVAL;
}

int ky_parse_seconds(const char *text, uint64_t *ret_usec)
{
	size_t len = strspn(text, "0123456789");

	return text[len] ? ky_parse_usec(text, ret_usec)
			 : parse_scaled(text, len, 1000000, ret_usec);
}

/* C libraries have the locale "C" as a static object, so nothing is allocated or released here. */
double ky_parse_real(const char *text, char **ret_end)
{
	return strtod_l(text, ret_end, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

/* The separator may have several bytes; a number has none of them elsewhere. */
size_t ky_put_decimal_point(char *number)
{
	static const char own[] = "0123456789+-einfaINFA";
	char *at = number + strspn(number, own), *end = at + strcspn(at, own);

	if (end > at) {
		*at++ = '.';
		memmove(at, end, strlen(end) + 1);
	}
	return strlen(number);
}

size_t ky_format_real(char text[KY_REAL_TEXT], double v, bool is_single)
{
	int most = is_single ? 9 : 17;

	for (int digits = is_single ? 6 : 15; digits <= most; digits++) {
		snprintf(text, KY_REAL_TEXT, "%.*g", digits, v);
		if (is_single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
			break;
	}
	return ky_put_decimal_point(text);
}

bool ky_name_valid(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);

	return len && len <= KY_OBJECT_NAME_MAX && *name != '.' && strspn(name, allowed) == len;
}

/* Damerau-Levenshtein distance (optimal string alignment), over three rows of the table. */
unsigned ky_edit_distance(const char *a, const char *b, unsigned limit)
{
	unsigned rows[3][KY_DISTANCE_MAX + 1], *before = rows[0], *prev = rows[1], *cur = rows[2];
	size_t la = strlen(a), lb = strlen(b);

	if (la > KY_DISTANCE_MAX || lb > KY_DISTANCE_MAX)
		return limit + 1;
	for (size_t j = 0; j <= lb; j++)
		prev[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *oldest = before;

		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned d = prev[j - 1] + (a[i - 1] != b[j - 1]);

			d = KY_MIN(d, KY_MIN(prev[j], cur[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = KY_MIN(d, before[j - 2] + 1);
			cur[j] = d;
		}
		before = prev;
		prev = cur;
		cur = oldest;
	}
	return KY_MIN(prev[lb], limit + 1);
}

unsigned ky_near_distance(const char *text, const char *name)
{
	unsigned limit = (unsigned)KY_MAX(strlen(name) / 3, (size_t)1);
	unsigned distance = ky_edit_distance(text, name, limit);

	return distance <= limit ? distance : UINT_MAX;
}
