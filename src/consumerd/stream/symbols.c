/* SPDX-License-Identifier: MIT */
#include "consumerd/stream/symbols.h"

#include <inttypes.h>

#include "kernel/kallsyms.h"

struct symbols *symbols_new(int fd)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->all = ky_kallsyms_read_fd(fd);
	return s->all ? s : symbols_free(s);
}

struct symbols *symbols_free(struct symbols *s)
{
	if (!s)
		return NULL;
	ky_kallsyms_free(s->all);
	ky_buf_deinit(&s->text);
	free(s);
	return NULL;
}

void symbols_renew(struct symbols *s, int fd)
{
	struct ky_kallsyms *all = ky_kallsyms_read_fd(fd);

	if (!all)
		return;
	ky_kallsyms_free(s->all);
	s->all = all;
	memset(&s->seen, 0, sizeof(s->seen));
}

static void add_symbol(struct symbols *s, uint64_t address)
{
	uint64_t end;
	const struct ky_kernel_symbol *found = ky_kallsyms_take(s->all, address, &end);

	if (!found)
		return;
	ky_buf_printf(&s->text, "%016" PRIx64 " t %s", found->address, found->name);
	if (*found->module)
		ky_buf_printf(&s->text, "\t[%s]", found->module);
	ky_buf_printf(&s->text, "\n%016" PRIx64 " e -\n", end);
}

void symbols_look_up(struct symbols *s)
{
	for (uint32_t i = 0; i < s->seen.n_fresh; i++) {
		add_symbol(s, s->seen.fresh[i]);
		/* A call that does not return may be the last instruction. */
		add_symbol(s, s->seen.fresh[i] - 1);
	}
	s->seen.n_fresh = 0;
}
