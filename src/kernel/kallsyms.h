/* SPDX-License-Identifier: MIT */
/*
 * The kernel's symbols: of /proc/kallsyms, or of a part of it that is in a trace. A part also has
 * lines of type 'e': there a function ends, behind which others are left out.
 */
#ifndef KERNEL_KALLSYMS_H
#define KERNEL_KALLSYMS_H

#include "base/util.h"

/* The kernel's half of the addresses. */
static inline bool ky_is_kernel_address(uint64_t address)
{
	return address >> 63;
}

struct ky_kernel_symbol {
	uint64_t address;
	const char *name, *module; /* name: "" at an end; module: "" in the kernel itself */
	bool taken;
};

struct ky_kallsyms;

/* Reads the file. Returns NULL if there is none, or if it has no address. The caller frees it. */
struct ky_kallsyms *ky_kallsyms_read(const char *path);
struct ky_kallsyms *ky_kallsyms_read_fd(int fd);
void ky_kallsyms_free(struct ky_kallsyms *k);
/*
 * Returns the symbol with the highest address up to this one, or NULL; none that is too far away to
 * be the function's. Borrowed from k.
 */
const struct ky_kernel_symbol *ky_kallsyms_find(const struct ky_kallsyms *k, uint64_t address);
/* Does so the first time that the symbol is found; then returns NULL. *ret_end: the next one. */
const struct ky_kernel_symbol *ky_kallsyms_take(
	struct ky_kallsyms *k, uint64_t address, uint64_t *ret_end);

#endif
