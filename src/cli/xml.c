/* SPDX-License-Identifier: MIT */
#include "cli/xml.h"

#include "base/buf.h"
#include "base/util.h"

struct parser {
	const char *p, *end;
	unsigned depth;
};

static bool skip_text(struct parser *s, const char *text)
{
	const size_t n = strlen(text);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, text, n) != 0)
		return false;
	s->p += n;
	return true;
}

/* Skips to behind the text. */
static bool skip_behind(struct parser *s, const char *text)
{
	while (s->p < s->end)
		if (skip_text(s, text))
			return true;
		else
			s->p++;
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_spaces(struct parser *s)
{
	while (s->p < s->end && is_space(*s->p))
		s->p++;
}

/* Skips comments and processing instructions. False: they have no end. */
static bool skip_others(struct parser *s)
{
	for (;;) {
		skip_spaces(s);
		if (skip_text(s, "<!--")) {
			if (!skip_behind(s, "-->"))
				return false;
		} else if (skip_text(s, "<?")) {
			if (!skip_behind(s, "?>"))
				return false;
		} else {
			return true;
		}
	}
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_-.:", c));
}

static char *take_name(struct parser *s)
{
	const char *begin = s->p;

	while (s->p < s->end && is_name_char(*s->p))
		s->p++;
	return s->p > begin ? strndup(begin, (size_t)(s->p - begin)) : NULL;
}

static bool put_utf8(struct ky_buf *to, unsigned long c)
{
	unsigned char b[4];
	size_t n = 1;

	if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return false;
	if (c < 0x80) {
		b[0] = (unsigned char)c;
	} else {
		n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		for (size_t i = n - 1; i; i--, c >>= 6)
			b[i] = (unsigned char)(0x80 | (c & 0x3f));
		b[0] = (unsigned char)((0xf00 >> n) | c);
	}
	ky_buf_append(to, b, n);
	return true;
}

/* &lt; &#233; &#xe9; */
static bool take_reference(struct parser *s, struct ky_buf *to)
{
	static const struct {
		const char *text;
		char c;
	} named[] = {{"lt;", '<'}, {"gt;", '>'}, {"amp;", '&'}, {"quot;", '"'}, {"apos;", '\''}};
	unsigned long number = 0;
	bool hex;

	for (size_t i = 0; i < KY_ARRAY_SIZE(named); i++) {
		if (!skip_text(s, named[i].text))
			continue;
		ky_buf_append(to, &named[i].c, 1);
		return true;
	}
	if (!skip_text(s, "#"))
		return false;
	hex = skip_text(s, "x");
	for (; s->p < s->end && *s->p != ';' && number <= 0x10ffff; s->p++) {
		const char *digits = "0123456789abcdef";
		const char *d = *s->p ? strchr(digits, *s->p | 0x20) : NULL;

		if (!d || (!hex && d - digits > 9))
			return false;
		number = number * (hex ? 16 : 10) + (unsigned long)(d - digits);
	}
	return skip_text(s, ";") && put_utf8(to, number);
}

static struct xml *take_element(struct parser *s);

/* Takes text and elements up to the end tag. */
static bool take_content(struct parser *s, struct xml *e, struct ky_buf *text)
{
	struct xml **last = &e->child;

	for (;;) {
		if (!skip_others(s) || s->p == s->end)
			return false;
		if (skip_text(s, "</"))
			return true;
		if (*s->p == '<') {
			*last = take_element(s);
			if (!*last)
				return false;
			last = &(*last)->next;
			continue;
		}
		while (s->p < s->end && *s->p != '<') {
			if (skip_text(s, "&")) {
				if (!take_reference(s, text))
					return false;
			} else {
				ky_buf_append(text, s->p++, 1);
			}
		}
	}
}

static bool take_text(struct xml *e, const struct ky_buf *text)
{
	size_t n = text->len;

	while (n && is_space(text->data[n - 1]))
		n--;
	if (text->error || (n && memchr(text->data, 0, n)))
		return false;
	e->text = strndup(n ? text->data : "", n);
	return e->text != NULL;
}

/* Takes the rest of a start tag. *ret_empty: the element has no content. */
static bool take_tag_end(struct parser *s, bool *ret_empty)
{
	char quote = 0;

	*ret_empty = false;
	for (; s->p < s->end; s->p++) {
		if (quote) {
			quote = *s->p == quote ? 0 : quote;
		} else if (*s->p == '"' || *s->p == '\'') {
			quote = *s->p;
		} else if (*s->p == '>') {
			s->p++;
			return true;
		} else {
			*ret_empty = *s->p == '/';
		}
	}
	return false;
}

static bool fill_element(struct parser *s, struct xml *e)
{
	struct ky_buf text = {0};
	bool empty, well;
	char *name = NULL;

	e->name = take_name(s);
	if (!e->name || !take_tag_end(s, &empty))
		return false;
	well = empty || take_content(s, e, &text);
	if (well && !empty) {
		name = take_name(s);
		skip_spaces(s);
		well = name && !strcmp(name, e->name) && skip_text(s, ">");
		free(name);
	}
	well = well && take_text(e, &text);
	ky_buf_deinit(&text);
	return well;
}

static struct xml *take_element(struct parser *s)
{
	struct xml *e = calloc(1, sizeof(*e));
	bool well;

	if (!e || !skip_text(s, "<") || s->depth == XML_DEPTH_MAX) {
		free(e);
		return NULL;
	}
	s->depth++;
	well = fill_element(s, e);
	s->depth--;
	if (well)
		return e;
	xml_free(e);
	return NULL;
}

struct xml *xml_parse(const char *text, size_t len)
{
	struct parser s = {text, text + len, 0};
	struct xml *root = skip_others(&s) ? take_element(&s) : NULL;

	if (root && skip_others(&s) && s.p == s.end)
		return root;
	xml_free(root);
	return NULL;
}

void xml_free(struct xml *e)
{
	while (e) {
		struct xml *next = e->next;

		xml_free(e->child);
		free(e->name);
		free(e->text);
		free(e);
		e = next;
	}
}

static const struct xml *find_element(const struct xml *e, const char *name)
{
	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

const struct xml *xml_child(const struct xml *e, const char *name)
{
	return e ? find_element(e->child, name) : NULL;
}

const struct xml *xml_next(const struct xml *e)
{
	return find_element(e->next, e->name);
}

const char *xml_text(const struct xml *e, const char *name)
{
	const struct xml *child = xml_child(e, name);

	return child ? child->text : "";
}
