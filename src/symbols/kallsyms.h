/* SPDX-License-Identifier: MIT */
/* The kernel's symbols, from a copy of /proc/kallsyms that was made on the traced machine. */
#ifndef SYMBOLS_KALLSYMS_H
#define SYMBOLS_KALLSYMS_H

#include "base/util.h"

/* The kernel's half of the addresses. */
static inline bool ky_is_kernel_address(uint64_t address)
{
	return address >> 63;
}

struct ky_kernel_symbol {
	uint64_t address;
	const char *name, *module; /* module: "" in the kernel itself */
};

struct ky_kallsyms;

/* Reads the file. Returns NULL if there is none, or if it has no address. The caller frees it. */
struct ky_kallsyms *ky_kallsyms_read(const char *path);
void ky_kallsyms_free(struct ky_kallsyms *k);
/* Returns the symbol with the highest address up to this one, or NULL. Borrowed from k. */
const struct ky_kernel_symbol *ky_kallsyms_find(const struct ky_kallsyms *k, uint64_t address);

#endif
