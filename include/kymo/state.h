/* SPDX-License-Identifier: MIT */
/*
 * Events that describe a state until the next such event: connections that are open, modes, sizes.
 *
 *	kymo_state_event(shop, till, kymo_u32(till, 3), kymo_string(clerk, "Ann"),
 *			 kymo_bool(open, 1));
 *	kymo_state_end(shop, till, kymo_u32(till, 3));
 *
 * The first field, of any kind, is the key. The program keeps the last event of each key, even if
 * no session records it. The tracer records it again in each session that starts later, or that the
 * program joins later, until the key is ended.
 *
 *	kymo_state_event (provider, name, key, fields...)
 *		event name; its first field is state_since: 0 here; in the repeated record it is the
 *		time of the original one, in nanoseconds since 1970
 *	kymo_state_end (provider, name, key)
 *		event name_end
 *
 * A repeated record is older than all other records of that key in the session. So a reader of a
 * trace ignores an event whose state_since is before the last event of its key, or that key's end.
 * It is a state dump (docs/statedump.md of the sources).
 *
 * The tracer keeps 4096 keys at the same time, and 440 bytes of an event. An event beyond these
 * limits is recorded as any event is, but not again: then it is counted as discarded.
 *
 * Values are computed, kept and locked for even if no session records them: use this for values
 * that change rarely. Do not use it in signal handlers. dlclose() of an object with such a
 * statement ends its keys. A forked child has its parent's keys. All this does nothing if the
 * tracer is not installed. C11 and C++11.
 */
#ifndef KYMO_STATE_H
#define KYMO_STATE_H

#pragma GCC system_header

#include <kymo/tracepoint.h>

/* clang-format off */

#define kymo_state_event(provider, name, ...) \
	KYMO__STATE_EVENT(provider, name, KYMO__FIRST_TOKEN(__VA_ARGS__, 0), __VA_ARGS__)
#define kymo_state_end(provider, name, key) \
	do { \
		static const struct kymo_field kymo__fields[] = {KYMO__DESC(key) KYMO__NO_FIELD}; \
		KYMO__DEFINE_EVENT(KYMO__STRING(provider), KYMO__STRING(name) "_end", KYMO_DEBUG_LINE, kymo__fields) \
		if (kymo__set_state || KYMO__IS_ENABLED(kymo__state)) { \
			KYMO__BUFFERS(KYMO__ROOM(key), KYMO__STATE_PIECES KYMO__PIECES(key)) \
			KYMO__PUT(key) \
			kymo__start_walk(&kymo__event, &kymo__c, KYMO__LIST_SIZE, kymo__forget_state, sizeof(KYMO__STRING(name)) - 1); \
		} \
	} while (0)

/*
 * From here on: the implementation; see <kymo/detail/fields.h>. The key is in the place of the
 * event's name, which is skipped.
 */
#define KYMO__STATE_EVENT(provider, name, key, ...) \
	do { \
		static const struct kymo_field kymo__fields[] = { \
			KYMO__DESC(kymo_u64(state_since, 0)) KYMO__DESC(key) KYMO__EACH(KYMO__DESC, __VA_ARGS__) KYMO__NO_FIELD}; \
		KYMO__DEFINE_EVENT(KYMO__STRING(provider), KYMO__STRING(name), KYMO_DEBUG_LINE, kymo__fields) \
		if (kymo__set_state || KYMO__IS_ENABLED(kymo__state)) { \
			KYMO__BUFFERS(+sizeof(uint64_t) KYMO__ROOM(key) KYMO__EACH(KYMO__ROOM, __VA_ARGS__), \
				KYMO__STATE_PIECES KYMO__PIECES(key) KYMO__EACH(KYMO__PIECES, __VA_ARGS__)) \
			KYMO__PUT(kymo_u64(state_since, 0)) \
			KYMO__PUT(key) \
			kymo__put_mark(&kymo__c), \
			KYMO__EACH(KYMO__PUT, __VA_ARGS__) \
			kymo__start_walk(&kymo__event, &kymo__c, KYMO__LIST_SIZE, kymo__keep_state, 0); \
		} \
	} while (0)

/* The mark behind the key, and a second list. */
#define KYMO__STATE_PIECES +2 + KYMO__DEEP

/* clang-format on */

KYMO__C_BEGIN
static __typeof__(kymo_app_state_set) kymo__weak_set_state
	__attribute__((__weakref__("kymo_app_state_set")));
static __typeof__(kymo_app_state_end) kymo__weak_end_state
	__attribute__((__weakref__("kymo_app_state_end")));
extern __typeof__(kymo_app_state_set) *kymo__set_state;
extern __typeof__(kymo_app_state_end) *kymo__end_state;
void kymo__state_loaded(void) __attribute__((__constructor__(102)));
void kymo__state_again(void);

/* A function of the tracer; NULL if there is no tracer. */
__attribute__((
	__weak__, __visibility__("hidden"))) __typeof__(kymo_app_state_set) *kymo__set_state = NULL;
__attribute__((
	__weak__, __visibility__("hidden"))) __typeof__(kymo_app_state_end) *kymo__end_state = NULL;

KYMO__QUIET __attribute__((__weak__, __visibility__("hidden"))) void kymo__state_loaded(void)
{
	void *set = kymo__find_own("kymo_app_state_set"),
	     *end = kymo__find_own("kymo_app_state_end");

	kymo__set_state = kymo__weak_set_state;
	kymo__end_state = kymo__weak_end_state;
	if (set && end) {
		memcpy(&kymo__set_state, &set, sizeof(set));
		memcpy(&kymo__end_state, &end, sizeof(end));
	}
}

KYMO__QUIET __attribute__((__weak__, __visibility__("hidden"))) void kymo__state_again(void)
{
	kymo__object_again();
	kymo__state_loaded();
}
KYMO__LATE(kymo__state_again)
KYMO__C_END

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_mark(struct kymo__cursor *c)
{
	struct kymo_piece mark = {NULL, 0, KYMO__MARK};

	kymo__put_piece(c, NULL, 0, 0);
	c->list[c->n++] = mark;
}

/* The tracer keeps the event first, so that no session misses it. */
static KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) void kymo__keep_state(
	struct kymo__walk *w)
{
	if (kymo__set_state)
		kymo__set_state(w->event, w->out, w->n, w->len, w->number - sizeof(uint64_t));
	if (KYMO__IS_ENABLED(*w->event->state))
		kymo__record_pieces(w);
}

static KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) void kymo__forget_state(
	struct kymo__walk *w)
{
	if (kymo__end_state)
		kymo__end_state(w->event, w->number, w->out, w->n, w->len);
	if (KYMO__IS_ENABLED(*w->event->state))
		kymo__record_pieces(w);
}

#endif
