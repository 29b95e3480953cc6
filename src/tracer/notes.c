/* SPDX-License-Identifier: MIT */
#include "tracer/notes.h"

#include <string.h>

#include "base/util.h"

static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * note)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_R && note->p_vaddr >= p->p_vaddr &&
			note->p_filesz <= p->p_filesz &&
			note->p_vaddr - p->p_vaddr <= p->p_filesz - note->p_filesz)
			return true;
	}
	return false;
}

/* Searches the n bytes of a segment at p. */
static bool find_in(const uint8_t *p, size_t n, size_t align,
	bool (*look)(const struct tracer_note *, void *), void *data)
{
	const size_t pad = align == 8 ? 8 : 4;
	struct tracer_note note;
	ElfW(Nhdr) h;

	while (n >= sizeof(h)) {
		size_t name, len;

		memcpy(&h, p, sizeof(h));
		name = ky_align_up(sizeof(h) + (size_t)h.n_namesz, pad);
		len = ky_align_up((size_t)h.n_descsz, pad);
		if (name > n || len > n - name)
			return false;
		note = (struct tracer_note){.type = h.n_type,
			.name_len = h.n_namesz,
			.len = h.n_descsz,
			.name = (const char *)p + sizeof(h),
			.bytes = p + name};
		if (look(&note, data))
			return true;
		p += name + len;
		n -= name + len;
	}
	return false;
}

bool tracer_notes_find(const struct dl_phdr_info *info,
	bool (*look)(const struct tracer_note *, void *), void *data)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE && is_loaded(info, p) &&
			find_in((const uint8_t *)(info->dlpi_addr + p->p_vaddr), p->p_filesz,
				p->p_align, look, data))
			return true;
	}
	return false;
}
