/* SPDX-License-Identifier: MIT */
#include "analysis/sites.h"

#include "base/hash.h"

uint64_t ky_site_number(struct ky_field_ref *f, const struct ky_item *item, uint64_t otherwise)
{
	struct ky_field_value value;

	if (!f->node || !ky_field_get(f, item, &value) || value.v->node->kind != KY_NODE_INT)
		return otherwise;
	return value.v->u;
}

const char *ky_site_function(const struct ky_event_class *e, const char *library)
{
	const char *name = e->name ? e->name : "";
	size_t n = strlen(library);

	if (!strncmp(name, "lttng_ust_", 10))
		name += 10;
	if (strncmp(name, library, n) != 0 || name[n] != ':')
		return NULL;
	name += n + 1;
	return strncmp(name, "pthread_", 8) ? name : name + 8;
}

uint64_t ky_site_process(const struct ky_item *item, uint64_t pid)
{
	const struct ky_env *host = ky_tsdl_env(&item->trace->tsdl, "hostname");
	uint32_t hash = host && host->text
				? ky_hash_add(KY_HASH_BASIS, host->text, strlen(host->text))
				: 0;

	return pid ^ ((uint64_t)hash << 32);
}
