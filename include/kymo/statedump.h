/* SPDX-License-Identifier: MIT */
/*
 * What a program is doing already when a session begins to look: the program says it again, as
 * events, to that session alone.
 *
 *   static void tell(void *data)
 *   {
 *           for (struct order *o = orders; o; o = o->next)
 *                   kymo_event(shop_state, order, kymo_u64(id, o->id));
 *   }
 *   static struct kymo_statedump state = {sizeof(state), 0, tell, NULL};
 *
 *   kymo_statedump_register(&state);         kymo enable-event 'shop_state:*'; kymo start
 *   ...
 *   kymo_statedump_unregister(&state);
 *
 * The function runs when a session starts that records any event of the program, when the program
 * joins such a session, and when 'kymo regenerate statedump' asks for it. All events that it
 * records, of whatever name, go to the sessions that asked, if their rules want them, and to no
 * other.
 *
 * It runs in a thread of the tracer's, with all signals blocked, one call at a time; that thread
 * uses the program's descriptors. It may take locks and as long as it must: nothing but the next
 * state dump waits for it. It must return, and must not wait for a thread that registers or
 * unregisters, or loads or unloads objects.
 *
 * The structures are described in <kymo/types.h>. All this does nothing where the tracer is not
 * installed. C11 and C++11.
 */
#ifndef KYMO_STATEDUMP_H
#define KYMO_STATEDUMP_H

#pragma GCC system_header

#include <kymo/tracepoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The tracer's; programs call the functions below. */
static __typeof__(kymo_app_statedump_add) kymo__weak_statedump_add
	__attribute__((weakref("kymo_app_statedump_add")));
static __typeof__(kymo_app_statedump_remove) kymo__weak_statedump_remove
	__attribute__((weakref("kymo_app_statedump_remove")));

/* An object without events has said no farewell yet: its state dumps go when it does. */
static inline __attribute__((unused)) void kymo__see_to_leaving(void)
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
 * From now on sessions are told this state. Where some record the program already, the function
 * runs for these, once for all of them, before this returns, unless that takes longer than
 * KYMO_REGISTER_TIMEOUT: so hold no lock that it takes. Not in it, nor in signal handlers. 0;
 * -EEXIST when it is registered; -EINVAL for a structure that is none; -ENOMEM, -EAGAIN (no thread
 * can be made). Also 0 where there is no tracer.
 */
static inline __attribute__((unused)) int kymo_statedump_register(struct kymo_statedump *dump)
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
	return add(dump, &kymo__object);
}

/*
 * When this returns, the function does not run, nor will it; but it may call this itself. dlclose()
 * of what registered does the same, and so does the end of the program, after static objects of C++
 * were destroyed: who has a function that uses such unregisters it before. Hold no lock that the
 * function takes.
 */
static inline __attribute__((unused)) void kymo_statedump_unregister(struct kymo_statedump *dump)
{
	void (*forget)(struct kymo_statedump *) = kymo__weak_statedump_remove;
	void *address;

	if (!forget) {
		address = kymo__find("kymo_app_statedump_remove");
		memcpy(&forget, &address, sizeof(forget));
	}
	if (forget)
		forget(dump);
}

#ifdef __cplusplus
}
#endif

#endif
