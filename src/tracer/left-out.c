/* SPDX-License-Identifier: MIT */
/*
 * Events that the application has, but cannot record. A stand-in for another tracer's library
 * reports them (src/lttng), from any thread and with any lock held: so an entry is filled without a
 * lock. The listener sends the entries to the daemons, whose `status` shows them.
 */
#include "tracer/tracer.h"

#define EXPORT	    __attribute__((visibility("default")))
#define ENTRIES_MAX 32u

struct left_out {
	bool complete;
	char event[256], why[160];
};

static struct left_out entries[ENTRIES_MAX];
/* Entries that were taken; may be more than there are. */
static uint32_t n_taken KY_WRITTEN_EARLY;

static void copy_text(char *to, size_t size, const char *from)
{
	const size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}

bool tracer_left_out_get(uint32_t i, struct ky_app_left_out *ret_message)
{
	const struct left_out *l = &entries[i];

	if (i >= ENTRIES_MAX || i >= __atomic_load_n(&n_taken, __ATOMIC_RELAXED))
		return false;
	/* Pairs with the release in kymo_app_left_out: the texts are there. */
	if (!__atomic_load_n(&l->complete, __ATOMIC_ACQUIRE))
		return false;
	*ret_message = (struct ky_app_left_out){.event = l->event, .why = l->why};
	return true;
}

static bool is_known(const char *event, const char *why)
{
	struct ky_app_left_out m;

	for (uint32_t i = 0; i < ENTRIES_MAX; i++)
		if (tracer_left_out_get(i, &m) && !strcmp(m.event, event) && !strcmp(m.why, why))
			return true;
	return false;
}

EXPORT void kymo_app_left_out(const char *event, const char *why)
{
	struct left_out *l;
	uint32_t i;

	if (is_known(event, why) || __atomic_load_n(&n_taken, __ATOMIC_RELAXED) >= ENTRIES_MAX)
		return;
	i = __atomic_fetch_add(&n_taken, 1, __ATOMIC_RELAXED);
	if (i >= ENTRIES_MAX)
		return;
	l = &entries[i];
	if (i == ENTRIES_MAX - 1) {
		event = "*";
		why = "there is more than is listed";
	}
	copy_text(l->event, sizeof(l->event), event);
	copy_text(l->why, sizeof(l->why), why);
	__atomic_store_n(&l->complete, true, __ATOMIC_RELEASE);
	if (!tracer.filtered)
		tracer_listener_wake();
}
