/* SPDX-License-Identifier: MIT */
/*
 * Every way to write an event, and every place where an event can be: the executable, a second
 * source of it, C++, a linked library, and a library that is loaded and unloaded (the first
 * argument is its path). Prints the number of emitted events, and whether kymo_event_enabled
 * returned true.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "forms.h"

static int emitted;

static void statements(void)
{
	for (int i = 0; i < 3; i++) {
		kymo_event(forms, plain, kymo_i32(number, i));
		emitted++;
	}
	kymo_event_level(forms, warning, KYMO_WARNING, kymo_i32(number, 1));
	kymo_event(forms, twice, kymo_i32(number, 1));
	kymo_event(forms, twice, kymo_i32(number, 2));
	kymo_trace(forms, shared, 1, "C");
	kymo_trace(forms, step_one, 1);
	kymo_trace(forms, step_two, 2);
	emitted += 6;
}

static void printf_style(void)
{
	char text[1000];

	memset(text, 'p', sizeof(text));
	kymo_tracef("%d green %s", 7, "bottles");
	kymo_tracef("%.*s", (int)sizeof(text), text);
	kymo_tracelog(KYMO_WARNING, "%s at %d", "careful", 3);
	errno = EDOM;
	kymo_tracef("%ls", L"\x7fffffff"); /* no character */
	printf("errno %d\n", errno == EDOM);
	emitted += 4;
}

static void load_and_unload(const char *path)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path, RTLD_NOW);
		void (*emit)(int);

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		*(void **)&emit = dlsym(library, "forms_loaded");
		emit(i);
		emitted++;
		dlclose(library);
	}
}

int main(int argc, char **argv)
{
	statements();
	printf_style();
	forms_second_source();
	forms_cplusplus();
	forms_library(1);
	emitted += 2 + 4 + 1;
	if (argc > 1)
		load_and_unload(argv[1]);
	printf("emitted %d\n", emitted);
	printf("enabled %d%d%d\n", kymo_event_enabled(forms, plain) ? 1 : 0,
		kymo_event_enabled(forms, no_such_event) ? 1 : 0,
		kymo_trace_enabled(forms, shared) ? 1 : 0);
	return 0;
}
