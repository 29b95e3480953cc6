/* SPDX-License-Identifier: MIT */
#include "analysis/texts.h"

struct ky_text {
	struct ky_hnode node;
	uint32_t number;
	uint32_t len;
	char text[];
};

static uint32_t find_name(const struct ky_texts *names, const char *text, size_t n, uint32_t hash)
{
	for (struct ky_hnode *h = ky_htab_first(&names->table, hash); h; h = ky_htab_next(h)) {
		struct ky_text *name = ky_container_of(h, struct ky_text, node);

		if (name->len == n && !memcmp(name->text, text, n))
			return name->number;
	}
	return 0;
}

static struct ky_text *new_name(const char *text, size_t n, uint32_t number)
{
	struct ky_text *name = malloc(sizeof(*name) + n + 1);

	if (!name)
		return NULL;
	name->number = number;
	name->len = (uint32_t)n;
	memcpy(name->text, text, n);
	name->text[n] = '\0';
	return name;
}

uint32_t ky_texts_add(struct ky_texts *names, const char *text, size_t n)
{
	struct ky_text *name;
	uint32_t hash, number;

	n = KY_MIN(n, KY_TEXTS_LENGTH);
	if (!n || names->error)
		return 0;
	hash = ky_hash(text, n);
	number = find_name(names, text, n, hash);
	if (number)
		return number;
	if (names->all.n == KY_TEXTS_MAX)
		return ky_texts_add(names, "(other)", 7);
	name = new_name(text, n, (uint32_t)names->all.n + 1);
	if (!name || ky_vec_add(&names->all, name) < 0) {
		free(name);
		names->error = -ENOMEM;
		return 0;
	}
	if (ky_htab_add(&names->table, &name->node, hash) < 0)
		names->error = -ENOMEM;
	/* "(other)" must be there before it is needed. */
	if (names->all.n == KY_TEXTS_MAX - 1)
		ky_texts_add(names, "(other)", 7);
	return name->number;
}

const char *ky_texts_get(const struct ky_texts *names, uint32_t name)
{
	return name ? names->all.v[name - 1]->text : "";
}

bool ky_texts_end_in(const char *text, const char *ending, size_t *ret_len)
{
	size_t len = strlen(text), n = strlen(ending);

	if (len <= n || strcmp(text + len - n, ending) != 0)
		return false;
	if (ret_len)
		*ret_len = len - n;
	return true;
}

void ky_texts_deinit(struct ky_texts *names)
{
	for (size_t i = 0; i < names->all.n; i++)
		free(names->all.v[i]);
	ky_vec_deinit(&names->all);
	ky_htab_deinit(&names->table);
}
