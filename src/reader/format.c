/* SPDX-License-Identifier: MIT */
#include "reader/format.h"

#include <time.h>

#define NS_PER_S 1000000000

void ky_format_u64(struct ky_buf *out, uint64_t v)
{
	char text[20], *p = text + sizeof(text);

	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	ky_buf_append(out, p, (size_t)(text + sizeof(text) - p));
}

void ky_format_i64(struct ky_buf *out, int64_t v)
{
	if (v < 0)
		ky_format_char(out, '-');
	ky_format_u64(out, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void ky_format_fraction(struct ky_buf *out, uint32_t ns)
{
	char text[10];

	text[0] = '.';
	for (int i = 9; i > 0; i--, ns /= 10)
		text[i] = (char)('0' + ns % 10);
	ky_buf_append(out, text, sizeof(text));
}

/* Times before 1970 as seconds: a time of day would be that of their distance. */
static void format_negative(struct ky_buf *out, int64_t ns)
{
	uint64_t distance = -(uint64_t)ns;

	ky_format_char(out, '-');
	ky_format_u64(out, distance / NS_PER_S);
	ky_format_fraction(out, (uint32_t)(distance % NS_PER_S));
}

void ky_format_time(struct ky_format *f, struct ky_buf *out, int64_t ns)
{
	time_t second = (time_t)(ns / NS_PER_S);
	struct tm tm;

	if (ns < 0) {
		format_negative(out, ns);
		return;
	}
	if (!f->had_second || f->second != second) {
		if (!localtime_r(&second, &tm) ||
			!strftime(f->second_text, sizeof(f->second_text), "%H:%M:%S", &tm))
			strcpy(f->second_text, "??:??:??");
		f->second = second;
		f->had_second = true;
	}
	ky_buf_append(out, f->second_text, strlen(f->second_text));
	ky_format_fraction(out, (uint32_t)(ns % NS_PER_S));
}

void ky_format_iso(struct ky_buf *out, int64_t ns)
{
	int64_t fraction = ((ns % NS_PER_S) + NS_PER_S) % NS_PER_S;
	time_t second = (time_t)((ns - fraction) / NS_PER_S);
	char text[48] = "?";
	struct tm tm;

	if (gmtime_r(&second, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	ky_buf_append(out, text, strlen(text));
	ky_format_fraction(out, (uint32_t)fraction);
	ky_format_char(out, 'Z');
}

const char *ky_enum_label(const struct ky_node *n, uint64_t v, uint32_t *at)
{
	const struct ky_type *t = n->type;

	while (*at < t->n) {
		const struct ky_label *l = &t->labels[(*at)++];

		if (n->is_signed ? (int64_t)v >= (int64_t)l->lo && (int64_t)v <= (int64_t)l->hi
				 : v >= l->lo && v <= l->hi)
			return l->label;
	}
	return NULL;
}
