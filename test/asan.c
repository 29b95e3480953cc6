/* SPDX-License-Identifier: MIT */
/*
 * Part of each program of a build with AddressSanitizer. Without it, a short program spends half of
 * its time on page faults of the sanitizer.
 *
 * The leak detector runs when a program ends. It reads all global variables, also those of its own
 * library: 5.6 MB that the program has never touched. With this file, the detector reads no globals
 * by itself, but those of all other libraries, which are registered as roots.
 *
 * Nor does the detector follow calls of __tls_get_addr: it guesses from the place of a block of
 * thread-local variables whether a header precedes it, and reads at any address if it is wrong.
 */
#ifdef __SANITIZE_ADDRESS__

#include <dlfcn.h>
#include <link.h>
#include <sanitizer/lsan_interface.h>
#include <stdint.h>
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

#ifndef __clang__

typedef void register_globals_fn(void *globals, intptr_t n);
register_globals_fn __asan_register_globals;

/*
 * Each source file registers its global variables when the program starts, and the sanitizer keeps
 * the call stack of each registration: two pages for each. Here all of them have one call stack,
 * because this function has no frame pointer. clang's runtime is part of the program, so its
 * function cannot be replaced.
 */
__attribute__((visibility("default"), optimize("omit-frame-pointer"))) void __asan_register_globals(
	void *globals, intptr_t n)
{
	static register_globals_fn *sanitizers;

	if (!sanitizers)
		sanitizers = (register_globals_fn *)dlsym(RTLD_NEXT, "__asan_register_globals");
	sanitizers(globals, n);
	__asm__ volatile(""); /* not a jump, which would leave the caller in the call stack */
}

#endif
#endif
