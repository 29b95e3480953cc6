/* SPDX-License-Identifier: MIT */
/* Without elfutils: addresses stay FILE+OFFSET. */
#include "symbols/elf-file.h"

enum ky_elf_result ky_elf_open(struct ky_elf **ret_elf, const struct ky_elf_identity *id,
	const char *const *dirs, size_t n)
{
	*ret_elf = NULL;
	return KY_ELF_NOT_BUILT;
}

void ky_elf_close(struct ky_elf *e)
{
}

uint64_t ky_elf_base(const struct ky_elf *e)
{
	return 0;
}

uint64_t ky_elf_distance(const struct ky_elf *e, uint64_t file_offset)
{
	return file_offset;
}

bool ky_elf_find(struct ky_elf *e, uint64_t address, bool is_return, struct ky_elf_place *ret)
{
	return false;
}
