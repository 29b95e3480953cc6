/* SPDX-License-Identifier: MIT */
#include "export/members.h"

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == ',' || *p == ':'))
		p++;
	return p;
}

static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

/* Returns the end of a JSON value. */
static const char *skip_value(const char *p, const char *end)
{
	int depth = 0;

	do {
		if (*p == '"') {
			p = skip_string(p, end);
			continue;
		}
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		p++;
	} while (p < end && (depth > 0 || (*p != ',' && *p != '}' && *p != ']')));
	return p;
}

static void put_utf8(struct ky_buf *to, uint32_t c)
{
	char bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(n == 1 ? c : (0xf0 << (4 - n) & 0xff) | c);
	ky_buf_append(to, bytes, n);
}

static uint32_t hex4(const char *p)
{
	char digits[5] = {p[0], p[1], p[2], p[3], 0};

	return (uint32_t)strtoul(digits, NULL, 16);
}

void ky_members_unescape(struct ky_buf *to, const char *p, const char *end)
{
	static const char names[] = "bfnrt", chars[] = "\b\f\n\r\t";
	const char *at;

	for (; p < end; p++) {
		if (*p != '\\') {
			ky_buf_append(to, p, 1);
		} else if (*++p == 'u' && end - p > 4) {
			uint32_t c = hex4(p + 1);

			p += 4;
			if (c >= 0xd800 && c < 0xdc00 && end - p > 6) {
				c = 0x10000 + ((c - 0xd800) << 10) + (hex4(p + 3) - 0xdc00);
				p += 6;
			}
			put_utf8(to, c);
		} else {
			at = strchr(names, *p);
			ky_buf_append(to, at && *at ? &chars[at - names] : p, 1);
		}
	}
}

void ky_members_begin(struct ky_members *m, const char *object, size_t len)
{
	*m = (struct ky_members){.value = object, .end = object ? object + len : NULL};
	m->value_len = object != NULL; /* the brace */
}

bool ky_members_next(struct ky_members *m)
{
	const char *at, *name_end;

	if (!m->value)
		return false;
	at = skip_blanks(m->value + m->value_len, m->end);
	if (at >= m->end || *at != '"')
		return false;
	m->name.len = 0;
	name_end = skip_string(at, m->end);
	ky_members_unescape(&m->name, at + 1, name_end - 1);
	m->value = skip_blanks(name_end, m->end);
	m->value_len = (size_t)(skip_value(m->value, m->end) - m->value);
	return true;
}

void ky_members_end(struct ky_members *m)
{
	ky_buf_deinit(&m->name);
}
