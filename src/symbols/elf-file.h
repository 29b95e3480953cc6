/* SPDX-License-Identifier: MIT */
/*
 * One ELF file and its debugging information, by elfutils: from an address in the file to functions
 * and lines. A build without elfutils has elf-file-none.c, which opens no file.
 *
 * libdw finds debugging information as debuggers do: in the file, in .gnu_debugdata, below
 * /usr/lib/debug by build ID and by debug link (whose checksum it verifies), and at the servers of
 * DEBUGINFOD_URLS. One thread at a time may use these functions.
 */
#ifndef SYMBOLS_ELF_FILE_H
#define SYMBOLS_ELF_FILE_H

#include "base/util.h"

#define KY_BUILD_ID_MAX 64
#define KY_FRAMES_MAX	16

struct ky_elf;

/* The identity of a file that a trace has recorded. */
struct ky_elf_identity {
	const char *path;
	uint8_t build_id[KY_BUILD_ID_MAX];
	size_t n_build_id; /* 0: the file has none, or none was recorded */
	uint64_t memsz;	   /* from the lowest address to the highest */
};

enum ky_elf_result {
	KY_ELF_FOUND,
	KY_ELF_MISSING,	   /* there is no such file */
	KY_ELF_DIFFERENT,  /* there is a file, but of another build */
	KY_ELF_NO_LIBRARY, /* elfutils, which reads files, is missing on this machine */
	KY_ELF_NOT_BUILT,  /* it was missing where this was built */
};

/* A function at an address; further ones if it was inlined into them. */
struct ky_elf_frame {
	const char *name; /* NULL: not known; valid until the next call */
	const char *file; /* last part of the source's path; NULL: not known; until the file closes
			   */
	int line;
};

struct ky_elf_place {
	struct ky_elf_frame frames[KY_FRAMES_MAX]; /* the innermost first */
	size_t n;
	uint64_t offset; /* from the begin of the last frame's function */
};

/*
 * Opens the file of that identity: at its path, or by its build ID, first below the n directories
 * (each may have a whole system or be a directory of debug files), then below "/". The caller
 * closes *ret_elf; it is NULL if the result is not KY_ELF_FOUND.
 */
enum ky_elf_result ky_elf_open(struct ky_elf **ret_elf, const struct ky_elf_identity *id,
	const char *const *dirs, size_t n);
void ky_elf_close(struct ky_elf *e);
/* Returns the lowest address of the file. */
uint64_t ky_elf_base(const struct ky_elf *e);
/*
 * Returns the distance from the lowest address of what lies at an offset in the file; the offset if
 * no segment has it.
 */
uint64_t ky_elf_distance(const struct ky_elf *e, uint64_t file_offset);
/*
 * Finds the functions at an address of the file. is_return: the address is the one behind a call,
 * which is meant. Returns false if none is known.
 */
bool ky_elf_find(struct ky_elf *e, uint64_t address, bool is_return, struct ky_elf_place *ret);

#endif
