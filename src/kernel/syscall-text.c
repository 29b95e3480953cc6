/* SPDX-License-Identifier: MIT */
#include "kernel/syscall-text.h"

/* Bytes that are no text, or that the kernel writes. */
static const char *const buffers[] = {"buf", "ubuf", "list", "optval", "u_msg_ptr", "shmaddr"};

static bool is_entry(const struct ky_kformat *f)
{
	return !strncmp(f->name, "sys_enter_", 10);
}

bool ky_kcall_is_text(const struct ky_kformat *f, const struct ky_kfield *field)
{
	if (!is_entry(f) || !field->is_text_pointer)
		return false;
	for (size_t i = 0; i < KY_ARRAY_SIZE(buffers); i++)
		if (!strcmp(field->name, buffers[i]))
			return false;
	return true;
}

static bool is_value_of(const struct ky_kfield *value, const struct ky_kfield *field)
{
	char name[KY_KNAME_MAX + 8];

	snprintf(name, sizeof(name), "__%s_val", field->name);
	return value->kind == KY_KFIELD_STRING && !strcmp(value->name, name);
}

const struct ky_kfield *ky_kcall_text(const struct ky_kformat *f, const struct ky_kfield *field)
{
	for (unsigned i = f->n_common; i < f->n_fields; i++)
		if (is_value_of(&f->fields[i], field))
			return &f->fields[i];
	return NULL;
}

bool ky_kcall_is_value(const struct ky_kformat *f, const struct ky_kfield *field)
{
	for (unsigned i = f->n_common; i < f->n_fields && is_entry(f); i++)
		if (is_value_of(field, &f->fields[i]))
			return true;
	return false;
}
