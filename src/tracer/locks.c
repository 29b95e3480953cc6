/* SPDX-License-Identifier: MIT */
#include "tracer/locks.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

#ifdef __LP64__
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#endif

/* An object's dynamic section, by tag: of addresses and sizes. */
struct dynamic {
	ElfW(Addr) base;
	ElfW(Addr) at[DT_JMPREL + 1];
};

static bool read_dynamic(struct dynamic *d, const struct dl_phdr_info *object)
{
	const ElfW(Dyn) *entry = NULL;

	memset(d, 0, sizeof(*d));
	d->base = object->dlpi_addr;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(d->base + object->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag > 0 && entry->d_tag <= DT_JMPREL)
			d->at[entry->d_tag] = entry->d_un.d_val;
	return d->at[DT_SYMTAB] && d->at[DT_STRTAB];
}

/* The dynamic linker has replaced some addresses in the section by those in memory. */
static const void *address(const struct dynamic *d, ElfW(Sxword) tag)
{
	ElfW(Addr) at = d->at[tag];

	return (const void *)(at < d->base ? d->base + at : at);
}

/*
 * Looks for an undefined symbol of this name among the relocations of a table: each begins with
 * r_offset and r_info.
 */
static bool table_needs(const struct dynamic *d, ElfW(Sxword) table, ElfW(Addr) size,
	ElfW(Addr) step, const char *name)
{
	const ElfW(Sym) *symbols = address(d, DT_SYMTAB);
	const char *names = address(d, DT_STRTAB), *relocations = address(d, table);

	for (ElfW(Addr) i = 0; d->at[table] && step && i + step <= size; i += step) {
		const ElfW(Rel) *r = (const void *)(relocations + i);
		const ElfW(Sym) *symbol = &symbols[SYMBOL_OF(r->r_info)];

		if (SYMBOL_OF(r->r_info) && symbol->st_shndx == SHN_UNDEF &&
			!strcmp(names + symbol->st_name, name))
			return true;
	}
	return false;
}

bool tracer_object_locks(const struct dl_phdr_info *object)
{
	static const char name[] = "mlockall";
	struct dynamic d;

	return read_dynamic(&d, object) &&
	       (table_needs(&d, DT_RELA, d.at[DT_RELASZ], d.at[DT_RELAENT], name) ||
		       table_needs(&d, DT_REL, d.at[DT_RELSZ], d.at[DT_RELENT], name) ||
		       table_needs(&d, DT_JMPREL, d.at[DT_PLTRELSZ],
			       d.at[DT_PLTREL] == DT_RELA ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel)),
			       name));
}
