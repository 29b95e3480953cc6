/* SPDX-License-Identifier: MIT */
/*
 * Places in programs for the kernel's probes: functions and SystemTap probes (SDT) of an ELF file,
 * as offsets in the file. The file may be damaged or hostile: nothing outside it is read.
 *
 * SDT notes (.note.stapsdt): https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
 */
#ifndef KERNEL_ELF_PLACES_H
#define KERNEL_ELF_PLACES_H

#include "base/buf.h"
#include "base/util.h"

struct elf {
	const uint8_t *data; /* the file */
	size_t size;	     /* bytes */
};

/* A probe that the program's source has. Texts are borrowed from the file. */
struct elf_sdt {
	const char *provider, *name;
	const char *arguments; /* "-4@%edi 8@-16(%rbp)" */
	uint64_t offset;
	uint64_t semaphore; /* offset of its counter; 0: none */
};

/* Maps the file. Returns 0, or -errno: -ENOEXEC if it is no program of this kind of machine. */
int elf_open(struct elf *e, const char *path);
void elf_close(struct elf *e);
/*
 * Finds the place that is `distance` bytes behind the begin of a function. Returns 0, -ENOENT, or
 * -ERANGE if the function is not so long.
 */
int elf_find_function(
	const struct elf *e, const char *name, uint64_t distance, uint64_t *ret_offset);
/* Calls each() for the names of all functions. */
void elf_each_function(const struct elf *e, void (*each)(void *arg, const char *name), void *arg);
/* Calls each() for all SDT probes. */
void elf_each_sdt(
	const struct elf *e, void (*each)(void *arg, const struct elf_sdt *probe), void *arg);
/*
 * Appends a line for each place of an SDT probe: "SUFFIX 0xOFFSET(0xSEMAPHORE) a1=%di:s32 ...".
 * Places whose arguments have other types than those of the first need an event of their own: the
 * suffix of its name is "_2", for example; else "". Adds the number of arguments that the kernel
 * cannot read. Returns the number of lines. Errors are to's.
 */
unsigned elf_sdt_places(const struct elf *e, const char *provider, const char *name,
	struct ky_buf *to, unsigned *n_left_out);
/*
 * Writes what the kernel calls an argument of an SDT probe: "a1=%di:s32" for number 1 and
 * "-4@%edi". text: up to a space or its end. Returns false if the kernel cannot say it.
 */
bool elf_sdt_argument(unsigned number, const char *text, char *out, size_t size);

#endif
