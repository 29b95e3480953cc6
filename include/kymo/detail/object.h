/* SPDX-License-Identifier: MIT */
/* How <kymo/tracepoint.h> works: an object that is loaded registers its events. */
#ifndef KYMO_DETAIL_OBJECT_H
#define KYMO_DETAIL_OBJECT_H

#pragma GCC system_header

#include <stddef.h>
#include <string.h>

#include <kymo/detail/fields.h>
#ifdef __has_include
#if __has_include(<kymo/detail/installed.h>)
#include <kymo/detail/installed.h>
#endif
#endif

/*
 * Registers the object's events with the tracer: once for each executable or shared object,
 * independent of how many of its sources include this header (weak and hidden: the linker keeps one
 * of each). The library is used if it is part of the program (static, linked or preloaded).
 * Otherwise it is loaded if it is installed. Otherwise the object runs without it, until the
 * program loads it itself.
 *
 * Functions that may be missing are called by weak names of our own, so that the program's own use
 * of a function, for example dlopen, remains as strong as it was.
 */
KYMO__C_BEGIN
void kymo_object_register(struct kymo_object *object);
void kymo_object_unregister(struct kymo_object *object);
static __typeof__(kymo_object_register) kymo__weak_register
	__attribute__((__weakref__("kymo_object_register")));
static __typeof__(kymo_object_unregister) kymo__weak_unregister
	__attribute__((__weakref__("kymo_object_unregister")));
/* Declared here, because not all programs that include this can include <dlfcn.h>. */
static void *kymo__weak_dlopen(const char *name, int flags)
	__attribute__((__nothrow__, __weakref__("dlopen")));
static void *kymo__weak_dlsym(void *library, const char *name)
	__attribute__((__nothrow__, __weakref__("dlsym")));
#define KYMO__NOW     2	   /* RTLD_NOW */
#define KYMO__DEFAULT NULL /* RTLD_DEFAULT */
extern const struct kymo_event *const __start_kymo_events[]
	__attribute__((__weak__, __visibility__("hidden")));
extern const struct kymo_event *const __stop_kymo_events[]
	__attribute__((__weak__, __visibility__("hidden")));
extern struct kymo_object kymo__object;
extern void (*kymo__leave)(struct kymo_object *);
/*
 * Priority: before the constructors of C++ objects, which may have events. It is in the
 * declaration, because GCC's -flto ignores one that is only in the definition that follows.
 */
void kymo__object_loaded(void) __attribute__((__constructor__(101)));
void kymo__object_again(void);
void kymo__object_unloaded(void) __attribute__((__destructor__(101)));

__attribute__((__weak__, __visibility__("hidden"))) struct kymo_object kymo__object = {
	0, KYMO_ABI_VERSION, NULL, NULL, NULL};
__attribute__((__weak__, __visibility__("hidden"))) void (*kymo__leave)(
	struct kymo_object *) = NULL;

/*
 * Returns the tracer library, or NULL. A static program may have dlopen, but the C library that
 * libkymo would bring along cannot run in it: the program has no symbols that could be found.
 */
static inline KYMO__QUIET __attribute__((__unused__)) void *kymo__library(void)
{
	void *library;

	if (!kymo__weak_dlopen || !kymo__weak_dlsym || !kymo__weak_dlsym(KYMO__DEFAULT, "malloc"))
		return NULL;
	library = kymo__weak_dlopen("libkymo.so.0", KYMO__NOW);
#ifdef KYMO__INSTALLED
	if (!library)
		library = kymo__weak_dlopen(KYMO__INSTALLED, KYMO__NOW);
#endif
	return library;
}

/* Returns a function of a tracer that is not linked with the program, or NULL. */
static inline KYMO__QUIET __attribute__((__unused__)) void *kymo__find(const char *name)
{
	void *library = kymo__library();

	return library ? kymo__weak_dlsym(library, name) : NULL;
}

/*
 * Returns the same if the object has been registered with that tracer, which is not part of the
 * program.
 */
static inline KYMO__QUIET __attribute__((__unused__)) void *kymo__find_own(const char *name)
{
	return kymo__weak_register || !kymo__leave ? NULL : kymo__find(name);
}

KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__weak__, __visibility__("hidden"))) void
kymo__object_loaded(void)
{
	void (*enter)(struct kymo_object *) = NULL;
	const char *const names[] = {"kymo_object_register", "kymo_object_unregister"};
	void *library, *address;
	size_t i;

	if (kymo__object.size || &__start_kymo_events[0] == &__stop_kymo_events[0])
		return;
	kymo__object.begin = __start_kymo_events;
	kymo__object.end = __stop_kymo_events;
	if (kymo__weak_register) {
		enter = kymo__weak_register;
		kymo__leave = kymo__weak_unregister;
	} else {
		library = kymo__library();
		for (i = 0; library && i < sizeof(names) / sizeof(names[0]); i++) {
			address = kymo__weak_dlsym(library, names[i]);
			memcpy(i ? &kymo__leave : &enter, &address, sizeof(address));
		}
	}
	kymo__object.size = (uint32_t)sizeof(kymo__object);
	if (enter)
		(enter)(&kymo__object);
}

/* Called again when the tracer has been loaded. */
KYMO__QUIET __attribute__((__weak__, __visibility__("hidden"))) void kymo__object_again(void)
{
	if (!kymo__object.size || kymo__leave)
		return;
	kymo__object.size = 0;
	kymo__object_loaded();
}
KYMO__LATE(kymo__object_again)

KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__weak__, __visibility__("hidden"))) void
kymo__object_unloaded(void)
{
	void (*leave)(struct kymo_object *) = kymo__leave;

	kymo__leave = NULL;
	if (leave)
		(leave)(&kymo__object);
}
KYMO__C_END

#endif
