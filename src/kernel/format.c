/* SPDX-License-Identifier: MIT */
#include "kernel/format.h"

#include <ctype.h>

/* A line of a format file: "field:TYPE NAME[N];\toffset:8;\tsize:16;\tsigned:0;". */
struct declaration {
	char type[KY_KNAME_MAX * 2];
	char *name;
	bool is_array;
	unsigned long n; /* elements of the array, as declared; 0: not a number */
	unsigned long offset, size;
	bool is_signed;
};

static bool read_number(const char *line, const char *end, const char *key, unsigned long *ret)
{
	const char *p = memmem(line, (size_t)(end - line), key, strlen(key));

	if (!p || !isdigit((unsigned char)p[strlen(key)]))
		return false;
	*ret = strtoul(p + strlen(key), NULL, 10);
	return true;
}

static bool name_is_valid(const char *name)
{
	if (!*name || isdigit((unsigned char)*name))
		return false;
	while (isalnum((unsigned char)*name) || *name == '_')
		name++;
	return !*name;
}

static void trim_end(char *s)
{
	size_t n = strlen(s);

	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		s[--n] = '\0';
}

/* "char comm[16]", "__data_loc char[] name", "unsigned long caller[8]", "struct in6_addr *a". */
static int split_declaration(struct declaration *d)
{
	char *bracket = strchr(d->type, '[');

	if (bracket) {
		d->is_array = true;
		d->n = strtoul(bracket + 1, NULL, 0);
		memmove(bracket, bracket + strcspn(bracket, "]") + (strchr(bracket, ']') != NULL),
			strlen(bracket + strcspn(bracket, "]") + (strchr(bracket, ']') != NULL)) +
				1);
	}
	trim_end(d->type);
	for (d->name = d->type + strlen(d->type); d->name > d->type; d->name--)
		if (!isalnum((unsigned char)d->name[-1]) && d->name[-1] != '_')
			break;
	if (d->name == d->type || strlen(d->name) >= KY_KNAME_MAX || !name_is_valid(d->name))
		return -EBADMSG;
	/* The name is moved, so that the type can end with a NUL: "void *p". */
	memmove(d->name + 1, d->name, strlen(d->name) + 1);
	*d->name++ = '\0';
	trim_end(d->type);
	return *d->type ? 0 : -EBADMSG;
}

static int read_declaration(struct declaration *d, const char *line, const char *line_end)
{
	const char *end = memchr(line, ';', (size_t)(line_end - line));
	unsigned long is_signed;

	*d = (struct declaration){.n = 0};
	if (!end || (size_t)(end - line) + 2 > sizeof(d->type) ||
		!read_number(end, line_end, "offset:", &d->offset) ||
		!read_number(end, line_end, "size:", &d->size) ||
		!read_number(end, line_end, "signed:", &is_signed) || d->offset > UINT16_MAX ||
		d->size > UINT16_MAX)
		return -EBADMSG;
	d->is_signed = is_signed;
	memcpy(d->type, line, (size_t)(end - line));
	return split_declaration(d);
}

static bool is_char(const char *type)
{
	return !strcmp(type, "char") || !strcmp(type, "const char");
}

/* Returns the bytes of an element of this type; 1, as for bytes, if it is not known. */
static uint8_t size_of_type(const char *type)
{
	static const struct {
		const char *word;
		uint8_t size;
	} sizes[] = {
		{"*", 8},
		{"char", 1},
		{"bool", 1},
		{"u8", 1},
		{"s8", 1},
		{"uint8_t", 1},
		{"u16", 2},
		{"s16", 2},
		{"short", 2},
		{"uint16_t", 2},
		{"int16_t", 2},
		{"u64", 8},
		{"s64", 8},
		{"long", 8},
		{"size_t", 8},
		{"gfn_t", 8},
		{"cpumask", 8},
		{"uint64_t", 8},
		{"int64_t", 8},
		{"u32", 4},
		{"s32", 4},
		{"int", 4},
		{"unsigned", 4},
		{"pid_t", 4},
		{"dev_t", 4},
		{"uint32_t", 4},
		{"int32_t", 4},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(sizes); i++) {
		const char *at = strstr(type, sizes[i].word);
		char before = at && at > type ? at[-1] : ' ';

		if (at && !isalnum((unsigned char)before))
			return sizes[i].size;
	}
	return 1;
}

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/*
 * Sets the size of a system call's argument. In the ring each takes 8 bytes, and `signed` says
 * nothing; the type is that of the call's definition.
 */
static void narrow_argument(struct ky_kfield *f, const char *type)
{
	static const struct {
		const char *type;
		uint8_t size, is_signed;
	} types[] = {
		{"int", 4, 1},
		{"unsigned int", 4, 0},
		{"unsigned", 4, 0},
		{"pid_t", 4, 1},
		{"u32", 4, 0},
		{"__u32", 4, 0},
		{"__s32", 4, 1},
		{"uid_t", 4, 0},
		{"gid_t", 4, 0},
		{"umode_t", 2, 0},
		{"clockid_t", 4, 1},
		{"key_t", 4, 1},
		{"mqd_t", 4, 1},
		{"timer_t", 4, 1},
		{"rwf_t", 4, 1},
		{"qid_t", 4, 0},
		{"key_serial_t", 4, 1},
		{"long", 8, 1},
		{"loff_t", 8, 1},
		{"off_t", 8, 1},
	};

	type += has_prefix(type, "const ") ? strlen("const ") : 0;
	if (has_prefix(type, "enum "))
		type = "unsigned int";
	for (size_t i = 0; i < KY_ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i].type)) {
			f->out = types[i].size;
			f->other_sign = f->is_signed != types[i].is_signed;
			f->is_signed = types[i].is_signed;
		}
}

static int make_dynamic(struct ky_kfield *f, const struct declaration *d, const char *type)
{
	if (d->size != 4)
		return -EBADMSG;
	f->kind = is_char(type) ? KY_KFIELD_STRING : KY_KFIELD_SEQUENCE;
	f->elem = size_of_type(type);
	return 0;
}

static int make_array(struct ky_kfield *f, const struct declaration *d, const char *type)
{
	f->elem = d->n && d->size % d->n == 0 && d->size / d->n <= 8 ? (uint8_t)(d->size / d->n)
								     : size_of_type(type);
	if (f->elem & (f->elem - 1) || d->size % f->elem)
		f->elem = 1;
	f->kind = is_char(type) ? KY_KFIELD_TEXT : KY_KFIELD_ARRAY;
	return 0;
}

static int make_field(struct ky_kfield *f, const struct declaration *d, bool is_call)
{
	const char *type = d->type;

	*f = (struct ky_kfield){.offset = (uint16_t)d->offset,
		.size = (uint16_t)d->size,
		.is_signed = d->is_signed,
		.hex = strchr(type, '*') || has_prefix(d->name, "__probe_"),
		.is_text_pointer = !strcmp(type, "char *") || !strcmp(type, "const char *"),
		.elem = 1,
		.out = (uint8_t)d->size};
	strcpy(f->name, d->name);
	if (has_prefix(type, "__data_loc ") || has_prefix(type, "__rel_loc ")) {
		f->relative = type[2] == 'r';
		return make_dynamic(f, d, strchr(type, ' ') + 1);
	}
	if (d->is_array)
		return make_array(f, d, type);
	/* A structure is recorded as its bytes. */
	f->kind = d->size <= 8 && !(d->size & (d->size - 1)) ? KY_KFIELD_INT : KY_KFIELD_ARRAY;
	if (is_call && d->size == 8 && !f->hex)
		narrow_argument(f, type);
	return 0;
}

/* Adds a field; one without bytes (a flexible array) is left out. */
static int add_field(struct ky_kformat *f, const char *line, const char *end, bool common)
{
	bool is_call = has_prefix(f->name, "sys_enter_") || has_prefix(f->name, "sys_exit_");
	struct ky_kfield *field = &f->fields[f->n_fields];
	struct declaration d;
	int ret;

	if (f->n_fields == KY_KFIELDS_MAX)
		return -EBADMSG;
	ret = read_declaration(&d, line, end);
	if (ret < 0 || !d.size)
		return ret;
	ret = make_field(field, &d, is_call);
	if (ret < 0)
		return ret;
	f->end = KY_MAX(f->end, (uint32_t)field->offset + field->size);
	f->n_fields++;
	f->n_common += common;
	return 0;
}

static int read_head(struct ky_kformat *f, const char *text)
{
	const char *name = has_prefix(text, "name: ") ? text + 6 : "";
	size_t n = strcspn(name, "\n");
	unsigned long id;

	if (!n || n >= sizeof(f->name) ||
		!read_number(name + n, strchr(name, '\0'), "\nID: ", &id) || id > UINT16_MAX)
		return -EBADMSG;
	memcpy(f->name, name, n);
	f->id = (uint16_t)id;
	return name_is_valid(f->name) ? 0 : -EBADMSG;
}

int ky_kformat_parse(struct ky_kformat *f, const char *text)
{
	bool common = true, begun = false;
	const char *line, *end;
	int ret;

	memset(f, 0, sizeof(*f));
	ret = read_head(f, text);
	for (line = text; !ret && *line; line = end + (*end != '\0')) {
		end = line + strcspn(line, "\n");
		if (has_prefix(line, "print fmt"))
			break;
		if (end == line && begun)
			common = false;
		if (!has_prefix(line, "\tfield:"))
			continue;
		begun = true;
		ret = add_field(f, line + 7, end, common);
	}
	return !ret && !f->n_common ? -EBADMSG : ret;
}

const struct ky_kfield *ky_kformat_find(const struct ky_kformat *f, const char *name)
{
	for (unsigned i = f->n_common; i < f->n_fields; i++)
		if (!strcmp(f->fields[i].name, name))
			return &f->fields[i];
	return NULL;
}

static bool has_line(const char *text, const char *field, unsigned offset, unsigned size)
{
	char place[64];
	const char *at = strstr(text, field), *end;

	snprintf(place, sizeof(place), "offset:%u;\tsize:%u;", offset, size);
	end = at ? at + strcspn(at, "\n") : NULL;
	return at && memmem(at, (size_t)(end - at), place, strlen(place));
}

bool ky_kheader_check(const char *header_page, const char *header_event)
{
	static const char *const lines[] = {"type_len    :    5 bits", "time_delta  :   27 bits",
		"array       :   32 bits", "padding     : type == 29", "time_extend : type == 30",
		"data max type_len  == 28"};
	const char *data = strstr(header_page, " data;");

	for (size_t i = 0; i < KY_ARRAY_SIZE(lines); i++)
		if (!strstr(header_event, lines[i]))
			return false;
	return has_line(header_page, " timestamp;", 0, 8) &&
	       has_line(header_page, " commit;", 8, 8) && data && strstr(data, "offset:16;");
}
