/* SPDX-License-Identifier: MIT */
/*
 * parts [LIBRARY [FUNCTION]]: emits the events of a provider that is somewhere. LIBRARY is loaded before; FUNCTION of it emits
 * others, and then it is unloaded.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "parts-tp.h"

#include "more-tp.h"

int main(int argc, char **argv)
{
	void *library = NULL;

	if (argc > 1) {
		library = dlopen(argv[1], RTLD_NOW);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	}
	tracepoint(parts, started);
	tracepoint(TRACEPOINT_PROVIDER, value, argc ? 42 : 0, "forty-two");
	do_tracepoint(parts, first_number, 1);
	tracepoint(parts, second_number, tracepoint_enabled(parts, value) != 0);
	lttng_ust_tracepoint(parts_more, value, 0.5);
	if (argc > 2) {
		void (*function)(void);
		void *symbol = dlsym(library, argv[2]);

		*(void **)&function = symbol;
		function();
		dlclose(library);
		tracepoint(parts, started);
		do_tracepoint(parts, first_number, 1);
	}
	return 0;
}
