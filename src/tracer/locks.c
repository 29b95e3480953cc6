/* SPDX-License-Identifier: MIT */
#include "tracer/locks.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

/* An object's tables of dynamic symbols, gABI and the GNU hash table. */
struct symbols {
	const ElfW(Sym) * v;
	const char *names;
	size_t names_size;
	size_t n; /* those that the object does not define are among the first n */
};

static const void *address(ElfW(Addr) base, ElfW(Addr) at)
{
	/* The dynamic linker has replaced some addresses in the section by those in memory. */
	return (const void *)(at < base ? base + at : at);
}

/* Returns how many bytes there are from `at` to the end of its segment. */
static size_t rest_of_segment(const struct dl_phdr_info *object, const void *at)
{
	ElfW(Addr) from = (ElfW(Addr))at - object->dlpi_addr;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && from - p->p_vaddr < p->p_filesz)
			return p->p_filesz - (from - p->p_vaddr);
	}
	return 0;
}

static bool find_symbols(struct symbols *ret, const struct dl_phdr_info *object)
{
	const ElfW(Addr) base = object->dlpi_addr;
	const ElfW(Dyn) *entry = NULL;
	const uint32_t *gnu_hash = NULL, *hash = NULL;

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(base + object->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			ret->v = address(base, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_STRTAB)
			ret->names = address(base, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_STRSZ)
			ret->names_size = entry->d_un.d_val;
		else if (entry->d_tag == DT_GNU_HASH)
			gnu_hash = address(base, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_HASH)
			hash = address(base, entry->d_un.d_ptr);
	}
	if (!ret->v || !ret->names)
		return false;
	/*
	 * The GNU table begins behind the symbols that are not defined, or is empty; the other one
	 * has all. Without either, all that lies between the symbols and their names, in the same
	 * segment, is taken for symbols.
	 */
	if (gnu_hash && gnu_hash[1] > 1)
		ret->n = gnu_hash[1];
	else if (hash)
		ret->n = hash[1];
	else if (ret->names > (const char *)ret->v)
		ret->n = KY_MIN((size_t)(ret->names - (const char *)ret->v),
				 rest_of_segment(object, ret->v)) /
			 sizeof(*ret->v);
	return true;
}

bool tracer_object_locks(const struct dl_phdr_info *object)
{
	struct symbols s;

	if (!find_symbols(&s, object))
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (s.v[i].st_shndx == SHN_UNDEF && s.v[i].st_name < s.names_size &&
			!strcmp(s.names + s.v[i].st_name, "mlockall"))
			return true;
	return false;
}
