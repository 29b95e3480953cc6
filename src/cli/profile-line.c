/* SPDX-License-Identifier: MIT */
#include "cli/profile.h"

struct finder {
	const char *p;
	const char *wanted;
	const char *found; /* the innermost value around the wanted one, so far */
	char path[512];	   /* of the value at p; "": the whole text */
};

static void skip_space(struct finder *f)
{
	f->p += strspn(f->p, " \t\r\n");
}

static void skip_string(struct finder *f)
{
	for (f->p++; *f->p && *f->p != '"'; f->p++)
		if (*f->p == '\\' && f->p[1])
			f->p++;
	f->p += *f->p == '"';
}

static void scan_value(struct finder *f);

/* Scans the value of a member or an element. */
static void scan_part(struct finder *f, const char *name, size_t name_len)
{
	size_t len = strlen(f->path);

	snprintf(f->path + len, sizeof(f->path) - len, "%s%.*s", len ? "/" : "", (int)name_len,
		name);
	scan_value(f);
	f->path[len] = '\0';
}

static void scan_object(struct finder *f)
{
	const char *key;

	for (f->p++, skip_space(f); *f->p == '"'; skip_space(f)) {
		key = f->p + 1;
		skip_string(f);
		const char *end = f->p - 1;

		skip_space(f);
		f->p += *f->p == ':';
		scan_part(f, key, (size_t)(end - key));
		skip_space(f);
		f->p += *f->p == ',';
	}
	f->p += *f->p == '}';
}

static void scan_array(struct finder *f)
{
	char digits[16];

	f->p++;
	skip_space(f);
	for (unsigned i = 0; *f->p && *f->p != ']'; i++) {
		scan_part(f, digits, (size_t)snprintf(digits, sizeof(digits), "%u", i));
		skip_space(f);
		f->p += *f->p == ',';
		skip_space(f);
	}
	f->p += *f->p == ']';
}

static bool is_around(const char *path, const char *wanted)
{
	size_t len = strlen(path);

	return !len || (!strncmp(path, wanted, len) && (wanted[len] == '/' || !wanted[len]));
}

static void scan_value(struct finder *f)
{
	skip_space(f);
	if (is_around(f->path, f->wanted))
		f->found = f->p;
	if (*f->p == '{')
		scan_object(f);
	else if (*f->p == '[')
		scan_array(f);
	else if (*f->p == '"')
		skip_string(f);
	else
		f->p += KY_MAX(strcspn(f->p, ",]} \t\r\n"), (size_t)(*f->p != '\0'));
}

unsigned profile_line(const char *text, const char *value_path)
{
	struct finder f = {.p = text, .wanted = value_path, .found = text};
	unsigned line = 1;

	scan_value(&f);
	for (; text < f.found; text++)
		line += *text == '\n';
	return line;
}
