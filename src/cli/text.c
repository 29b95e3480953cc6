/* SPDX-License-Identifier: MIT */
#include "cli/text.h"

#include <inttypes.h>
#include <limits.h>
#include <strings.h>

#include "base/utf8.h"

const char *cli_format_usec(char *buf, size_t size, uint64_t usec, const char *gap)
{
	const char *unit = "us", *other;
	uint64_t factor = 1, f;

	for (size_t i = 1; (other = ky_unit_of_time(i, &f)) && usec % f == 0; i++) {
		unit = other;
		factor = f;
	}
	snprintf(buf, size, "%" PRIu64 "%s%s", usec / factor, gap, unit);
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
	if (ky_parse_number(text, KY_N_LOGLEVELS - 1, &number) < 0)
		return -EINVAL;
	*ret_level = (int)number;
	return 0;
}

const char *cli_loglevel_name(int64_t level)
{
	return level >= 0 && level < KY_N_LOGLEVELS ? ky_loglevel_names[level] : NULL;
}

const char *cli_nearest(const char *text, const char *const *candidates)
{
	unsigned best = UINT_MAX, d;
	const char *nearest = NULL;

	for (; *candidates; candidates++) {
		d = ky_near_distance(text, *candidates);
		if (d < best) {
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

static bool ends_line(char c)
{
	return c == '\n' || c == '\r';
}

const char *cli_last_line(char *text)
{
	size_t len = strlen(text);

	while (len && ends_line(text[len - 1]))
		text[--len] = '\0';
	while (len && !ends_line(text[len - 1]))
		len--;
	return text + len;
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

void cli_escape_json(struct ky_buf *to, const char *json)
{
	size_t n = strlen(json), len;
	uint32_t code;
	bool harmless;

	for (; n; json += len, n -= len) {
		len = ky_utf8_length(json, n, &code, &harmless);
		if (!len)
			ky_buf_puts(to, "\\ufffd");
		else if (harmless || code < 0x20)
			ky_buf_append(to, json, len);
		else
			ky_buf_printf(to, "\\u%04x", (unsigned)code);
		len = KY_MAX(len, (size_t)1);
	}
}
