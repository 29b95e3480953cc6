/* SPDX-License-Identifier: MIT */
/*
 * The functions of elfutils that find functions and lines. libdw is loaded when the first file is
 * opened: with the libraries that it needs, it would take a third of the time in which each command
 * starts.
 */
#ifndef SYMBOLS_ELFUTILS_H
#define SYMBOLS_ELFUTILS_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>

#define ELFUTILS_FUNCTIONS(X)                                                                      \
	X(dwarf_attr)                                                                              \
	X(dwarf_attr_integrate)                                                                    \
	X(dwarf_diename)                                                                           \
	X(dwarf_filesrc)                                                                           \
	X(dwarf_formstring)                                                                        \
	X(dwarf_formudata)                                                                         \
	X(dwarf_getscopes)                                                                         \
	X(dwarf_getscopes_die)                                                                     \
	X(dwarf_getsrcfiles)                                                                       \
	X(dwarf_tag)                                                                               \
	X(dwelf_elf_gnu_build_id)                                                                  \
	X(dwfl_begin)                                                                              \
	X(dwfl_build_id_find_elf)                                                                  \
	X(dwfl_end)                                                                                \
	X(dwfl_lineinfo)                                                                           \
	X(dwfl_module_addrdie)                                                                     \
	X(dwfl_module_addrinfo)                                                                    \
	X(dwfl_module_getsrc)                                                                      \
	X(dwfl_report_begin)                                                                       \
	X(dwfl_report_elf)                                                                         \
	X(dwfl_report_end)                                                                         \
	X(dwfl_standard_find_debuginfo)                                                            \
	X(elf_begin)                                                                               \
	X(elf_end)                                                                                 \
	X(elf_getphdrnum)                                                                          \
	X(elf_kind)                                                                                \
	X(elf_version)                                                                             \
	X(gelf_getphdr)

extern struct elfutils {
#define ELFUTILS_MEMBER(name) __typeof__(name) *name;
	ELFUTILS_FUNCTIONS(ELFUTILS_MEMBER)
#undef ELFUTILS_MEMBER
} elfutils;

/* Sets the functions. Returns false if the library is missing. It stays loaded. */
bool elfutils_load(void);

#endif
