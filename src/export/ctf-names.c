/* SPDX-License-Identifier: MIT */
#include "export/ctf-names.h"

struct taken {
	struct ky_hnode node;
	char name[];
};

static bool is_taken(const struct ky_ctf_names *names, const char *name)
{
	static const char *const keywords[] = {"", "_Bool", "_Complex", "_Imaginary"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(keywords); i++)
		if (!strcmp(name, keywords[i]))
			return true;
	for (struct ky_hnode *h = ky_htab_first(&names->taken, ky_hash(name, strlen(name))); h;
		h = ky_htab_next(h))
		if (!strcmp(ky_container_of(h, struct taken, node)->name, name))
			return true;
	return false;
}

int ky_ctf_names_take(struct ky_ctf_names *names, const char *name)
{
	size_t len = strlen(name);
	struct taken *t = malloc(sizeof(*t) + len + 1);

	if (!t || ky_htab_add(&names->taken, &t->node, ky_hash(name, len)) < 0) {
		free(t);
		return -ENOMEM;
	}
	memcpy(t->name, name, len + 1);
	return 0;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

int ky_ctf_names_choose(
	struct ky_ctf_names *names, struct ky_buf *ret, const char *prefix, const char *name)
{
	size_t len;
	int r;

	ret->len = 0;
	ky_buf_puts(ret, prefix);
	for (; *name; name++) {
		bool is_digit = *name >= '0' && *name <= '9';

		ky_buf_append(ret, is_letter(*name) || (is_digit && ret->len) ? name : "_", 1);
	}
	len = ret->len;
	while (!ret->error && is_taken(names, ret->data)) {
		ret->len = len;
		ky_buf_printf(ret, "_%u", ++names->number);
	}
	r = ret->error ? ret->error : ky_ctf_names_take(names, ret->data);
	return r || !*prefix ? r : ky_ctf_names_take(names, ret->data + strlen(prefix));
}

void ky_ctf_names_deinit(struct ky_ctf_names *names)
{
	ky_htab_free_all(&names->taken, struct taken, node);
	*names = (struct ky_ctf_names){0};
}
