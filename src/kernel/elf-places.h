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
 * Appends a line " 0xOFFSET" for each function of that name, `distance` bytes behind its begin:
 * several source files may have a function of one name, and so have versions of a library. Returns
 * the number of lines; -ENOENT; -ERANGE if the function is not so long; -ENOTUNIQ if there are
 * several functions, for which the distance cannot be right. *ret_chooses: one of them chooses the
 * code that programs execute when they start (IFUNC). Errors are to's.
 */
int elf_function_places(const struct elf *e, const char *name, uint64_t distance, struct ky_buf *to,
	bool *ret_chooses);
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
