/* SPDX-License-Identifier: MIT */
/*
 * Values of the program's own that are recorded with each event, where a channel asks for them:
 *
 *   static void get_user(void *data, union kymo_context_value *value)
 *   {
 *           value->string = current_user;
 *   }
 *   static struct kymo_context user = {
 *           sizeof(user), KYMO_CONTEXT_STRING, "shop:user", get_user, NULL};
 *
 *   kymo_context_register(&user);            kymo add-context -u -t '$app.shop:user'
 *   ...
 *   kymo_context_unregister(&user);
 *
 * The function is called by the thread that records, for each event, also in signal handlers, and
 * must return. It may do what signal handlers may, must not record an event, register or
 * unregister, and leave errno as it was.
 *
 * The structures are described in <kymo/types.h>. All this does nothing where the tracer is not
 * installed. C11 and C++11.
 */
#ifndef KYMO_CONTEXT_H
#define KYMO_CONTEXT_H

#pragma GCC system_header

#include <kymo/tracepoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The tracer's; programs call the functions below. */
static __typeof__(kymo_app_context_add) kymo__weak_context_add
	__attribute__((__weakref__("kymo_app_context_add")));
static __typeof__(kymo_app_context_remove) kymo__weak_context_remove
	__attribute__((__weakref__("kymo_app_context_remove")));
static __typeof__(kymo_contexts_invalidate) kymo__weak_contexts_invalidate
	__attribute__((__weakref__("kymo_contexts_invalidate")));

/*
 * From now on the context has a value. 0; -EEXIST when another of its name is registered; -EINVAL
 * for a name or type that is none; -ENOMEM. Also 0 where there is no tracer.
 */
static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) int kymo_context_register(
	struct kymo_context *context)
{
	int (*add)(struct kymo_context *) = kymo__weak_context_add;
	void *address;

	if (!add) {
		address = kymo__find("kymo_app_context_add");
		memcpy(&add, &address, sizeof(add));
	}
	return add ? (add)(context) : 0;
}

/* When this returns, no thread is in its function, and none will be. */
static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) void
kymo_context_unregister(struct kymo_context *context)
{
	void (*forget)(struct kymo_context *) = kymo__weak_context_remove;
	void *address;

	if (!forget) {
		address = kymo__find("kymo_app_context_remove");
		memcpy(&forget, &address, sizeof(forget));
	}
	if (forget)
		(forget)(context);
}

/*
 * A thread's name, the process's credentials or namespaces have changed: the next event says so.
 * Without this call (and without the library of 'kymo record --with=libc', which makes it) it is
 * noticed some microseconds later. Not in signal handlers where the tracer is not linked with the
 * program.
 */
static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) void kymo_contexts_changed(
	void)
{
	static void (*invalidate)(void) = kymo__weak_contexts_invalidate;
	static int looked;
	void *address;

	if (!invalidate && !looked) {
		looked = 1;
		address = kymo__find("kymo_contexts_invalidate");
		memcpy(&invalidate, &address, sizeof(invalidate));
	}
	if (invalidate)
		(invalidate)();
}

#ifdef __cplusplus
}
#endif

#endif
