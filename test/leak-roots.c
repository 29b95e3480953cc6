/* SPDX-License-Identifier: MIT */
/*
 * Part of each program of a build with AddressSanitizer, whose leak detector runs when a program
 * ends. The detector reads all global variables, also those of its own library: 5.6 MB that the
 * program has never touched. On a machine with slow page faults, that takes half of a short
 * program's time. With this file, the detector reads no globals by itself, but those of all other
 * libraries, which are registered as roots.
 *
 * Nor does the detector follow calls of __tls_get_addr: it guesses from the place of a block of
 * thread-local variables whether a header precedes it, and reads at any address if it is wrong.
 */
#ifdef __SANITIZE_ADDRESS__

#include <link.h>
#include <sanitizer/lsan_interface.h>
#include <string.h>

const char *__lsan_default_options(void);

__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
	return "use_globals=0:intercept_tls_get_addr=0";
}

static int add_roots(struct dl_phdr_info *library, size_t size, void *data)
{
	const ElfW(Phdr) *h = library->dlpi_phdr, *end = h + library->dlpi_phnum;

	if (strstr(library->dlpi_name, "/libasan.so"))
		return 0;
	for (; h < end; h++)
		if (h->p_type == PT_LOAD && (h->p_flags & PF_W))
			__lsan_register_root_region(
				(const void *)(library->dlpi_addr + h->p_vaddr), h->p_memsz);
	return 0;
}

/* The detector runs after all destructors. */
__attribute__((destructor)) static void add_all_roots(void)
{
	dl_iterate_phdr(add_roots, NULL);
}

#endif
