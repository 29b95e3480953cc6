/* SPDX-License-Identifier: MIT */
#include "cli/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <strings.h>

#include "base/utf8.h"

int cli_parse_number(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t v = 0;
	unsigned digit;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		digit = (unsigned)(*text - '0');
		if (v > (max - digit) / 10 || digit > max)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*ret_value = v;
	return 0;
}

int cli_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char suffixes[] = "KMG";
	size_t len = strlen(text);
	char digits[24];
	const char *suffix;
	unsigned shift = 0;
	int r;

	if (!len || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len + 1);
	suffix = strchr(suffixes, toupper((unsigned char)digits[len - 1]));
	if (suffix) {
		shift = 10 * (unsigned)(suffix - suffixes + 1);
		digits[len - 1] = '\0';
	}
	r = cli_parse_number(digits, UINT64_MAX >> shift, ret_bytes);
	if (!r)
		*ret_bytes <<= shift;
	return r;
}

static const struct {
	const char *name;
	uint64_t usec;
} units_of_time[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}};

int cli_parse_usec(const char *text, uint64_t *ret_usec)
{
	size_t len = strspn(text, "0123456789");
	uint64_t unit = text[len] ? 0 : 1;
	char digits[24];
	int r;

	if (len >= sizeof(digits))
		return -ERANGE;
	memcpy(digits, text, len);
	digits[len] = '\0';
	for (size_t i = 0; i < KY_ARRAY_SIZE(units_of_time); i++)
		if (!strcmp(text + len, units_of_time[i].name))
			unit = units_of_time[i].usec;
	if (!unit)
		return -EINVAL;
	r = cli_parse_number(digits, UINT64_MAX / unit, ret_usec);
	if (!r)
		*ret_usec *= unit;
	return r;
}

const char *cli_format_usec(char *buf, size_t size, uint64_t usec)
{
	size_t i = KY_ARRAY_SIZE(units_of_time) - 1;

	while (i && usec % units_of_time[i].usec)
		i--;
	snprintf(buf, size, "%" PRIu64 " %s", usec / units_of_time[i].usec, units_of_time[i].name);
	return buf;
}

const char *cli_format_size(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, size, "%u bytes", (unsigned)bytes);
		return buf;
	}
	for (; v >= 1023.95 && i + 1 < KY_ARRAY_SIZE(units); i++)
		v /= 1024;
	snprintf(buf, size, "%.1f %s", v, units[i]);
	return buf;
}

static const char *without_prefix(const char *text)
{
	static const char *const prefixes[] = {"KYMO_", "TRACE_"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(prefixes); i++) {
		if (!strncasecmp(text, prefixes[i], strlen(prefixes[i])))
			return text + strlen(prefixes[i]);
	}
	return text;
}

int cli_parse_loglevel(const char *text, int *ret_level)
{
	const char *name = without_prefix(text);
	uint64_t number;

	for (int i = 0; i < KY_N_LOGLEVELS; i++) {
		if (!strcasecmp(name, ky_loglevel_names[i])) {
			*ret_level = i;
			return 0;
		}
	}
	if (cli_parse_number(text, KY_N_LOGLEVELS - 1, &number) < 0)
		return -EINVAL;
	*ret_level = (int)number;
	return 0;
}

const char *cli_loglevel_name(int64_t level)
{
	return level >= 0 && level < KY_N_LOGLEVELS ? ky_loglevel_names[level] : NULL;
}

#define SESSION_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

bool cli_session_name_valid(const char *name)
{
	size_t len = strlen(name);

	return len && len <= 128 && *name != '.' && strspn(name, SESSION_CHARACTERS) == len;
}

/*
 * Damerau-Levenshtein distance (optimal string alignment) over three rows of the table. Texts
 * longer than DISTANCE_MAX are never near anything.
 */
#define DISTANCE_MAX 64

static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][DISTANCE_MAX + 1], *before = rows[0], *prev = rows[1], *cur = rows[2],
					    *free_row;
	size_t la = strlen(a), lb = strlen(b);

	if (la > DISTANCE_MAX || lb > DISTANCE_MAX)
		return UINT_MAX;
	for (size_t j = 0; j <= lb; j++)
		prev[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned d = prev[j - 1] + (a[i - 1] != b[j - 1]);

			d = KY_MIN(d, KY_MIN(prev[j], cur[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = KY_MIN(d, before[j - 2] + 1);
			cur[j] = d;
		}
		free_row = before;
		before = prev;
		prev = cur;
		cur = free_row;
	}
	return prev[lb];
}

const char *cli_nearest(const char *text, const char *const *candidates)
{
	unsigned best = UINT_MAX, d;
	const char *nearest = NULL;

	for (; *candidates; candidates++) {
		d = distance(text, *candidates);
		if (d < best && d <= KY_MAX(strlen(*candidates) / 3, (size_t)1)) {
			best = d;
			nearest = *candidates;
		}
	}
	return nearest;
}

const char *cli_log_text(const char *line)
{
	size_t n = strcspn(line, " ");

	return strncmp(line, "kymo", 4) || line[n - 1] != ':' || !line[n] ? line : line + n + 1;
}

const char *cli_last_line(char *text)
{
	size_t len = strlen(text);
	char *newline;

	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	newline = strrchr(text, '\n');
	return newline ? newline + 1 : text;
}

void cli_escape(struct ky_buf *to, const char *text)
{
	size_t n = strlen(text), len;
	uint32_t code;
	bool harmless;

	for (; n; text += len, n -= len) {
		len = ky_utf8_length(text, n, &code, &harmless);
		if (len && harmless) {
			ky_buf_append(to, text, len);
			continue;
		}
		len = KY_MAX(len, (size_t)1);
		for (size_t i = 0; i < len; i++)
			ky_buf_printf(to, "\\x%02x", (unsigned char)text[i]);
	}
}
