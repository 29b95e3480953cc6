/* SPDX-License-Identifier: MIT */
/*
 * Objects that were loaded before this library and have searched for it in vain. When an
 * application loads the library itself, or something that is linked with it, the objects search
 * again. The notes that the headers leave in them (KYMO_NOTE_LATE in <kymo/types.h>) lead to them:
 * they are tables of functions to call.
 *
 * Objects that are not initialized yet search in their constructors. When the library is preloaded,
 * that is all of them.
 */
#include "tracer/notes.h"
#include "tracer/tracer.h"

/* Searches the n-th function, counted from 0. */
struct search {
	size_t n;
	void (*const *last)(
		/* table of the last note: each source of an object leaves a note of the same one */
		void);
	void (*found)(void);
};

static bool look_at(const struct tracer_note *note, void *data)
{
	struct search *s = data;
	intptr_t distances[2];
	void (*const *begin)(void), (*const *end)(void);

	if (note->type != KYMO_NOTE_LATE || note->name_len != sizeof(KYMO_NOTE_NAME) ||
		note->len != sizeof(distances) ||
		memcmp(note->name, KYMO_NOTE_NAME, sizeof(KYMO_NOTE_NAME)))
		return false;
	memcpy(distances, note->bytes, sizeof(distances));
	begin = (void (*const *)(void))((uintptr_t)note->bytes + (uintptr_t)distances[0]);
	end = (void (*const *)(void))(
		(uintptr_t)note->bytes + sizeof(distances[0]) + (uintptr_t)distances[1]);
	if (begin == s->last)
		return false;
	s->last = begin;
	if (s->n >= (size_t)(end - begin)) {
		s->n -= (size_t)(end - begin);
		return false;
	}
	s->found = begin[s->n];
	return true;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *search)
{
	(void)size;
	return tracer_notes_find(info, look_at, search);
}

/*
 * Calls nothing while the dynamic linker reports its list: a function may wait for the listener,
 * which requests that list too.
 */
static __attribute__((constructor)) void on_load(void)
{
	int saved = errno;

	for (size_t n = 0;; n++) {
		struct search s = {.n = n};

		if (!dl_iterate_phdr(look_into, &s))
			break;
		s.found();
	}
	errno = saved;
}
