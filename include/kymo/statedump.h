/* SPDX-License-Identifier: MIT */
/*
 * The state of a program at the start of a session: the program reports it as events, to that
 * session alone.
 *
 *   static void report(void *data)
 *   {
 *           for (struct order *o = orders; o; o = o->next)
 *                   kymo_event(shop_state, order, kymo_u64(id, o->id));
 *   }
 *   static struct kymo_statedump state = {sizeof(state), 0, report, NULL};
 *
 *   kymo_statedump_register(&state);         kymo enable-event 'shop_state:*'; kymo start
 *   ...
 *   kymo_statedump_unregister(&state);
 *
 * The function runs when a session starts that records any event of the program, when the program
 * joins such a session, and when 'kymo regenerate statedump' requests it. All events that it
 * records, of any name, go to the sessions that requested the state, if their rules match them, and
 * to no other.
 *
 * It runs in a thread of the tracer, with all signals blocked, one call at a time. That thread uses
 * the program's descriptors. The function may take locks, and any time: only the next state dump
 * waits for it. It must return. It must not wait for a thread that registers or unregisters, or
 * loads or unloads objects.
 *
 * The structures are described in <kymo/types.h>. All this does nothing if the tracer is not
 * installed. C11 and C++11.
 */
#ifndef KYMO_STATEDUMP_H
#define KYMO_STATEDUMP_H

#pragma GCC system_header

#include <kymo/tracepoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of the tracer; programs call the functions below. */
static __typeof__(kymo_app_statedump_add) kymo__weak_statedump_add
	__attribute__((__weakref__("kymo_app_statedump_add")));
static __typeof__(kymo_app_statedump_remove) kymo__weak_statedump_remove
	__attribute__((__weakref__("kymo_app_statedump_remove")));

/*
 * An object without events calls nothing yet when it is unloaded: makes it unregister, which ends
 * its state dumps.
 */
static inline KYMO__QUIET __attribute__((__unused__)) void kymo__see_to_leaving(void)
{
	void *address;

	if (!kymo__leave)
		kymo__leave = kymo__weak_unregister;
	if (!kymo__leave) {
		address = kymo__find("kymo_object_unregister");
		memcpy(&kymo__leave, &address, sizeof(kymo__leave));
	}
}

/*
 * Registers a state dump: from now on it reports to sessions. If some record the program already,
 * the function runs once for all of them before this returns, unless that takes longer than
 * KYMO_REGISTER_TIMEOUT: so hold no lock that the function takes. Do not call this in the function,
 * nor in signal handlers. Returns 0; -EEXIST if it is registered; -EINVAL for an invalid structure;
 * -ENOMEM; -EAGAIN if no thread can be created. Also returns 0 if there is no tracer.
 */
static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) int
kymo_statedump_register(struct kymo_statedump *dump)
{
	int (*add)(struct kymo_statedump *, struct kymo_object *) = kymo__weak_statedump_add;
	void *address;

	if (!add) {
		address = kymo__find("kymo_app_statedump_add");
		memcpy(&add, &address, sizeof(add));
	}
	if (!add)
		return 0;
	kymo__see_to_leaving();
	return (add)(dump, &kymo__object);
}

/*
 * Unregisters a state dump. When this returns, the function does not run, and never will; but the
 * function may call this itself. dlclose() of the object that registered does the same. So does the
 * end of the program, after static objects of C++ were destroyed: a program whose function uses
 * these unregisters it before. Hold no lock that the function takes.
 */
static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) void
kymo_statedump_unregister(struct kymo_statedump *dump)
{
	void (*forget)(struct kymo_statedump *) = kymo__weak_statedump_remove;
	void *address;

	if (!forget) {
		address = kymo__find("kymo_app_statedump_remove");
		memcpy(&forget, &address, sizeof(forget));
	}
	if (forget)
		(forget)(dump);
}

#ifdef __cplusplus
}
#endif

#endif
