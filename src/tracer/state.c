/* SPDX-License-Identifier: MIT */
/*
 * The tracer keeps values as the records of their events, and reports them in a state dump like
 * those of applications: it records each again, with the time when it was set in the first field.
 * That field is 0 in the application's own records. An application's thread first keeps its value,
 * and then checks whether a session records the event. So no session misses a value: the dump
 * reports what was kept before the dump began, and the session records what comes later.
 *
 * Slots never move, so the dump goes from one to the next and releases the lock between them.
 * Recording under the lock does not wait for room.
 */
#include "tracer/state.h"

#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tracer/dispatch.h"
#include "tracer/statedump.h"

#define N_BUCKETS 1024u
#define LOST_MAX  4096u
#define SINCE	  sizeof(uint64_t) /* the first field */
#define KEY_MAX	  (TRACER_STATE_VALUE_MAX - SINCE)

struct slot {
	const struct kymo_event *event; /* NULL: free */
	uint64_t set_ns;		/* CLOCK_MONOTONIC */
	uint32_t hash;
	uint32_t next;	  /* in its bucket, or in the list of free slots: number from 1, or 0 */
	uint32_t key_len; /* length of the key, which is behind the first field */
	uint32_t len;	  /* 0: larger than a slot, or its key is; counted as lost */
	unsigned char record[TRACER_STATE_VALUE_MAX + KYMO_SCRATCH_SLACK];
};

static struct {
	struct slot *slots; /* TRACER_STATE_KEYS */
	uint32_t n_used;    /* slots that were ever used */
	uint32_t free;	    /* first free slot: number from 1, or 0 */
	bool is_registered;
	uint32_t n_lost;
	uint32_t buckets[N_BUCKETS];
	/* keys that found no slot, by their hashes */
	struct {
		const struct kymo_event *event;
		uint32_t hash;
	} lost[LOST_MAX];
} values;

/*
 * Identifies a value: name_len letters of the event's name, and a key, of which up to KEY_MAX bytes
 * are kept.
 */
struct key {
	const char *provider, *name;
	size_t name_len;
	const unsigned char *bytes;
	size_t len;
	uint32_t hash;
};

static void make_key(struct key *key, const struct kymo_event *event, size_t name_len,
	const unsigned char *bytes, size_t len)
{
	*key = (struct key){event->provider, event->name, name_len, bytes, len, KY_HASH_BASIS};
	key->hash = ky_hash_add(key->hash, key->provider, strlen(key->provider) + 1);
	key->hash = ky_hash_add(key->hash, key->name, name_len);
	key->hash = ky_hash_add(key->hash, &len, sizeof(len));
	key->hash = ky_hash_add(key->hash, bytes, KY_MIN(len, KEY_MAX));
}

static bool is_of(const struct slot *s, const struct key *key)
{
	return s->hash == key->hash && s->key_len == key->len &&
	       !memcmp(s->record + SINCE, key->bytes, key->len) &&
	       !strcmp(s->event->provider, key->provider) &&
	       !strncmp(s->event->name, key->name, key->name_len) && !s->event->name[key->name_len];
}

/* Returns the link that leads to the key's slot, or to none. */
static uint32_t *find_slot(const struct key *key)
{
	uint32_t *at = &values.buckets[key->hash % N_BUCKETS];

	while (*at && !is_of(&values.slots[*at - 1], key))
		at = &values.slots[*at - 1].next;
	return at;
}

static void unlink_slot(uint32_t *at)
{
	uint32_t number = *at;
	struct slot *s = &values.slots[number - 1];

	*at = s->next;
	s->event = NULL;
	s->next = values.free;
	values.free = number;
}

/* Adds a slot for a new key to its bucket. Returns NULL if there are too many. */
static struct slot *add_slot(const struct key *key)
{
	uint32_t number = values.free, *bucket = &values.buckets[key->hash % N_BUCKETS];
	struct slot *s;

	if (!number && values.n_used == TRACER_STATE_KEYS)
		return NULL;
	s = &values.slots[number ? number - 1 : values.n_used];
	if (number)
		values.free = s->next;
	else
		number = ++values.n_used;
	s->hash = key->hash;
	s->next = *bucket;
	*bucket = number;
	return s;
}

/* The key was reported, or has ended: it no longer counts as lost. */
static void forget_lost(const struct key *key)
{
	for (uint32_t i = 0; i < values.n_lost; i++)
		if (values.lost[i].hash == key->hash) {
			values.lost[i] = values.lost[--values.n_lost];
			return;
		}
}

static void note_lost(const struct key *key, const struct kymo_event *event)
{
	forget_lost(key);
	if (values.n_lost == LOST_MAX)
		return;
	values.lost[values.n_lost].event = event;
	values.lost[values.n_lost++].hash = key->hash;
}

/* Copies fields, or their first `max` bytes, into one piece. */
static void flatten(unsigned char *to, size_t max, const struct kymo_piece *pieces, size_t n_pieces)
{
	for (size_t i = 0; i < n_pieces && max; i++) {
		size_t part = KY_MIN((size_t)pieces[i].len, max);

		memcpy(to, pieces[i].ptr, part);
		for (size_t k = 0; pieces[i].flags & KYMO_PIECE_TEXT && k < part; k++)
			to[k] = to[k] ? to[k] : '#';
		to += part;
		max -= part;
	}
}

/* --- state dump --- */

static void dump_slot(const struct slot *s)
{
	uint64_t since = ky_clock_ns(CLOCK_REALTIME) - (ky_clock_ns(CLOCK_MONOTONIC) - s->set_ns);
	unsigned char record[sizeof(s->record)];

	if (!s->event->state->enabled)
		return;
	if (!s->len) {
		tracer_lose_only(tracer_only, s->event->state->hooks);
		return;
	}
	memcpy(record, &since, sizeof(since));
	memcpy(record + SINCE, s->record + SINCE, s->len - SINCE);
	s->event->state->record(s->event, record, s->len, NULL, 0);
}

static void dump_values(void *data)
{
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);
	sigset_t old;

	(void)data;
	tracer_lock(&old);
	for (uint32_t i = 0; i < values.n_used; i++) {
		/* The sessions record newer values already. */
		if (values.slots[i].event && values.slots[i].set_ns <= now)
			dump_slot(&values.slots[i]);
		tracer_unlock(&old);
		tracer_lock(&old);
	}
	for (uint32_t i = 0; i < values.n_lost; i++)
		tracer_lose_only(tracer_only, values.lost[i].event->state->hooks);
	tracer_unlock(&old);
}

static struct kymo_statedump dump = {sizeof(dump), 0, dump_values, NULL};

/* --- functions for applications --- */

static bool prepare_values(void)
{
	if (!values.slots)
		values.slots = tracer_alloc(TRACER_STATE_KEYS * sizeof(*values.slots), false);
	if (values.slots && !values.is_registered)
		values.is_registered = tracer_statedump_add_own(&dump) == 0;
	return values.slots && values.is_registered;
}

static void keep_state(
	const struct kymo_event *event, const unsigned char *record, size_t len, size_t key_len)
{
	struct key key;
	struct slot *s = NULL;
	uint32_t number;

	make_key(&key, event, strlen(event->name), record + SINCE, key_len);
	if (prepare_values() && key_len <= KEY_MAX) {
		number = *find_slot(&key);
		s = number ? &values.slots[number - 1] : add_slot(&key);
	}
	if (!s) {
		note_lost(&key, event);
		return;
	}
	forget_lost(&key);
	s->event = event;
	s->set_ns = ky_clock_ns(CLOCK_MONOTONIC);
	s->key_len = (uint32_t)key_len;
	s->len = len <= TRACER_STATE_VALUE_MAX ? (uint32_t)len : 0;
	memcpy(s->record, record, s->len ? len : SINCE + key_len);
}

__attribute__((visibility("default"))) void kymo_app_state_set(const struct kymo_event *event,
	const struct kymo_piece *pieces, size_t n_pieces, size_t len, size_t key_len)
{
	unsigned char record[TRACER_STATE_VALUE_MAX];
	int saved = errno;
	sigset_t old;

	if (tracer.off || tracer_is_raw_child())
		return;
	flatten(record, sizeof(record), pieces, n_pieces);
	tracer_lock(&old);
	keep_state(event, record, len, key_len);
	tracer_unlock(&old);
	errno = saved;
}

__attribute__((visibility("default"))) void kymo_app_state_end(const struct kymo_event *event,
	size_t name_len, const struct kymo_piece *pieces, size_t n_pieces, size_t len)
{
	unsigned char bytes[KEY_MAX];
	int saved = errno;
	struct key key;
	uint32_t *at;
	sigset_t old;

	if (tracer.off || tracer_is_raw_child())
		return;
	flatten(bytes, sizeof(bytes), pieces, n_pieces);
	make_key(&key, event, name_len, bytes, len);
	tracer_lock(&old);
	at = find_slot(&key);
	if (*at)
		unlink_slot(at);
	forget_lost(&key);
	tracer_unlock(&old);
	errno = saved;
}

static bool has_event(const struct kymo_object *object, const struct kymo_event *event)
{
	const struct kymo_event *const *e = object->begin;

	while (e < object->end && *e != event)
		e++;
	return e < object->end;
}

void tracer_state_forget_object(const struct kymo_object *object)
{
	for (uint32_t i = 0; i < N_BUCKETS && values.n_used; i++)
		for (uint32_t *at = &values.buckets[i]; *at;)
			if (has_event(object, values.slots[*at - 1].event))
				unlink_slot(at);
			else
				at = &values.slots[*at - 1].next;
	for (uint32_t i = 0; i < values.n_lost;)
		if (has_event(object, values.lost[i].event))
			values.lost[i] = values.lost[--values.n_lost];
		else
			i++;
}
