/* SPDX-License-Identifier: MIT */
#include "reader/format.h"

#define NS_PER_S 1000000000

/* The second that ns lies in, as text; seldom another one than before. */
static const struct ky_second *find_second(
	struct ky_second *s, int64_t ns, bool is_utc, const char *form)
{
	time_t time;
	struct tm tm;

	if (s->len && (uint64_t)ns - (uint64_t)s->begin_ns < NS_PER_S)
		return s;
	time = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
	s->begin_ns = (int64_t)((uint64_t)time * NS_PER_S);
	if (!(is_utc ? gmtime_r(&time, &tm) : localtime_r(&time, &tm)) ||
		!(s->len = strftime(s->text, sizeof(s->text), form, &tm)))
		s->len = strlen(strcpy(s->text, "??:??:??"));
	return s;
}

static char *put_second(char *to, const struct ky_second *s, int64_t ns)
{
	memcpy(to, s->text, sizeof(s->text));
	return ky_put_fraction(to + s->len, (uint32_t)((uint64_t)ns - (uint64_t)s->begin_ns));
}

static char *put_seconds(char *to, int64_t ns)
{
	uint64_t distance = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	if (ns < 0)
		to = ky_put_char(to, '-');
	to = ky_put_u64(to, distance / NS_PER_S);
	return ky_put_fraction(to, (uint32_t)(distance % NS_PER_S));
}

char *ky_put_time(struct ky_format *f, char *to, int64_t ns)
{
	static const char *const forms[] = {[KY_TIME_LOCAL] = "%H:%M:%S",
		[KY_TIME_UTC] = "%H:%M:%S",
		[KY_TIME_DATE] = "%Y-%m-%d %H:%M:%S"};

	if (f->time_form == KY_TIME_RELATIVE)
		return put_seconds(to, (int64_t)((uint64_t)ns - (uint64_t)f->origin_ns));
	/* Times before 1970: a time of day would be that of their distance. */
	if (ns < 0 || f->time_form == KY_TIME_SECONDS)
		return put_seconds(to, ns);
	return put_second(to,
		find_second(&f->local, ns, f->time_form == KY_TIME_UTC, forms[f->time_form]), ns);
}

char *ky_put_limit(char *to, int64_t ns)
{
	return put_seconds(ns < 0 ? ky_put_char(to, '@') : to, ns);
}

char *ky_put_iso(struct ky_format *f, char *to, int64_t ns)
{
	return ky_put_char(
		put_second(to, find_second(&f->utc, ns, true, "%Y-%m-%dT%H:%M:%S"), ns), 'Z');
}

static bool range_holds(const struct ky_range *r, uint64_t v, bool is_signed)
{
	return is_signed ? (int64_t)v >= (int64_t)r->lo && (int64_t)v <= (int64_t)r->hi
			 : v >= r->lo && v <= r->hi;
}

const char *ky_enum_label(const struct ky_node *n, uint64_t v, uint32_t *at)
{
	const struct ky_type *t = n->type;

	if (t->segments.n) {
		const struct ky_segment *s = ky_segments_find(&t->segments, v);

		return s && *at < s->n ? t->labels[t->segments.indexes[s->first + (*at)++]] : NULL;
	}
	while (*at < t->n) {
		uint32_t i = (*at)++;

		if (range_holds(&t->ranges[i], v, n->is_signed))
			return t->labels[i];
	}
	return NULL;
}

const char *ky_flag_label(const struct ky_node *n, uint64_t v, uint32_t *at)
{
	const struct ky_type *t = n->type;
	const char *last = *at ? t->labels[*at - 1] : NULL;

	while (*at < t->n) {
		const struct ky_range *r = &t->ranges[*at];
		const char *label = t->labels[(*at)++];
		uint64_t above = r->hi < 63 ? ~(uint64_t)0 << (r->hi + 1) : 0;

		if (label != last && r->lo < 64 && (v & ~above) >> r->lo)
			return label;
	}
	return NULL;
}

static uint32_t unit_at(const struct ky_node *n, const char *p)
{
	uint16_t v16;
	uint32_t v32;

	if (ky_encoding_unit(n->encoding) == 2) {
		memcpy(&v16, p, sizeof(v16));
		return n->encoding == KY_UTF_16LE ? le16toh(v16) : be16toh(v16);
	}
	memcpy(&v32, p, sizeof(v32));
	return n->encoding == KY_UTF_32LE ? le32toh(v32) : be32toh(v32);
}

static char *put_utf8(char *to, uint32_t code)
{
	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		code = 0xfffd;
	if (code < 0x80)
		return ky_put_char(to, (char)code);
	if (code < 0x800) {
		to = ky_put_char(to, (char)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			to = ky_put_char(to, (char)(0xe0 | code >> 12));
		} else {
			to = ky_put_char(to, (char)(0xf0 | code >> 18));
			to = ky_put_char(to, (char)(0x80 | (code >> 12 & 0x3f)));
		}
		to = ky_put_char(to, (char)(0x80 | (code >> 6 & 0x3f)));
	}
	return ky_put_char(to, (char)(0x80 | (code & 0x3f)));
}

char *ky_text_utf8(const struct ky_node *n, const struct ky_value *v, size_t *ret_len)
{
	size_t unit = ky_encoding_unit(n->encoding), i = 0;
	char *text = malloc(v->n / unit * 4 + 1), *to = text;

	while (text && i + unit <= v->n) {
		uint32_t code = unit_at(n, v->text + i), low;

		i += unit;
		if (unit == 2 && code >= 0xd800 && code < 0xdc00 && i + unit <= v->n) {
			low = unit_at(n, v->text + i);
			if (low >= 0xdc00 && low < 0xe000) {
				code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
				i += unit;
			}
		}
		to = put_utf8(to, code);
	}
	*ret_len = text ? (size_t)(to - text) : 0;
	return text;
}
