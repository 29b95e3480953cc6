/* SPDX-License-Identifier: MIT */
/*
 * A provider's probe calls these for one event: reserve, a write for each field, commit. The record
 * is collected in memory of the thread's, in Kymo's layout, and handed over at the end. A signal
 * handler that interrupts a probe, and has events itself, uses the memory behind: the room of a
 * record is taken at its begin, and given back at its end.
 *
 * A record without room, or whose memory cannot be had, is handed over as one that is too large:
 * libkymo counts it as discarded.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lttng/lttng.h"

#define ROOM	   ((size_t)64 << 10) /* of a thread; only pages that are used become memory */
#define ALIGNED(n) (((n) + 15) & ~(size_t)15)

/* A probe's context says that `ip` is the address of a record with values for filters. */
#define HAS_VALUES 0x4b594d4fu

/* Of an event, or of its values for filters only, which come first. */
struct record {
	struct record *below; /* of the same thread: interrupted by this one */
	const void *caller;   /* on the stack of the probe */
	const struct event *event;
	struct record *asides;
	const uint8_t *step;
	unsigned char *begin, *p, *end;
	size_t mapped; /* bytes of memory of its own */
	bool overflow;
};

struct room {
	struct urcu_reader reader;
	struct record *top;
	size_t used;
	unsigned char bytes[];
};

static __thread struct room *own __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_end;
static bool have_key;

static void free_room(void *room)
{
	own = NULL;
	/* If LTTng's liblttng-ust-common is there too, the variable is its own. */
	if (lttng_ust_urcu_reader == &((struct room *)room)->reader)
		lttng_ust_urcu_reader = NULL;
	munmap(room, ROOM);
}

__attribute__((constructor(101))) static void make_key(void)
{
	have_key = pthread_key_create(&thread_end, free_room) == 0;
}

static void *map_pages(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static __attribute__((noinline)) struct room *make_room(void)
{
	const int saved = errno;
	struct room *room = map_pages(ROOM);

	if (room && own) { /* a signal handler was faster */
		munmap(room, ROOM);
		return own;
	}
	own = room;
	if (room && have_key)
		pthread_setspecific(thread_end, room);
	errno = saved;
	return room;
}

/* --- values for filters only --- */

static const void *load_pointer(const char *value)
{
	const void *p;

	memcpy(&p, value, sizeof(p));
	return p;
}

/* Arrays and sequences: a number of elements, and their address. */
static size_t elements_size(const struct kymo_field *f, const char *value)
{
	unsigned long n;

	memcpy(&n, value, sizeof(n));
	return n * f->size;
}

static size_t aside_size(const struct aside *a, const char *values)
{
	const char *value = values + a->offset;

	switch (a->field.kind) {
	case KYMO_FIELD_STRING:
		return strlen(load_pointer(value)) + 1;
	case KYMO_FIELD_ARRAY:
	case KYMO_FIELD_TEXT:
		return elements_size(&a->field, value);
	case KYMO_FIELD_SEQUENCE:
	case KYMO_FIELD_TEXT_SEQUENCE:
		return sizeof(uint32_t) + elements_size(&a->field, value);
	default:
		return a->field.size;
	}
}

/* Integers come as 64 bits, floating-point numbers as double, all in the machine's byte order. */
static void put_scalar(unsigned char *p, const struct kymo_field *f, const char *value)
{
	uint64_t bits;

	memcpy(&bits, value, sizeof(bits));
	if (f->kind == KYMO_FIELD_FLOAT && f->size == sizeof(float)) {
		double wide;
		float narrow;

		memcpy(&wide, value, sizeof(wide));
		narrow = (float)wide;
		memcpy(p, &narrow, sizeof(narrow));
		return;
	}
	if (f->flags & KYMO_FIELD_NETWORK)
		bits = __builtin_bswap64(bits) >> (64 - 8 * f->size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	bits <<= 64 - 8 * f->size;
#endif
	memcpy(p, &bits, f->size);
}

/*
 * Returns the number of bytes, at most `size`: that of aside_size, or less if another thread made a
 * text shorter.
 */
static size_t put_aside(unsigned char *p, size_t size, const struct aside *a, const char *values)
{
	const char *value = values + a->offset;
	size_t n = aside_size(a, values);
	uint32_t count;

	if (n > size)
		return 0;
	switch (a->field.kind) {
	case KYMO_FIELD_STRING:
		n = kymo__copy_text(p, load_pointer(value), n - 1);
		p[n++] = 0;
		break;
	case KYMO_FIELD_SEQUENCE:
	case KYMO_FIELD_TEXT_SEQUENCE:
		count = (uint32_t)((n - sizeof(count)) / a->field.size);
		memcpy(p, &count, sizeof(count));
		memcpy(p + sizeof(count), load_pointer(value + sizeof(unsigned long)),
			n - sizeof(count));
		break;
	case KYMO_FIELD_ARRAY:
	case KYMO_FIELD_TEXT:
		memcpy(p, load_pointer(value + sizeof(unsigned long)), n);
		break;
	default:
		put_scalar(p, &a->field, value);
	}
	return n;
}

static size_t asides_size(const struct event *e, const char *values)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_asides; i++)
		n += aside_size(&e->asides[i], values);
	return n;
}

/* --- the room of records --- */

/*
 * A record that was never committed (an exception, longjmp), and its values for filters, end when
 * its caller makes another one. The others stay: their callers may still be there.
 */
static void end_abandoned(struct room *room, const void *caller)
{
	const int saved = errno;
	struct record **at = &room->top, *r;

	while ((r = *at)) {
		if (r->caller != caller && (!r->asides || r->asides->caller != caller)) {
			at = &r->below;
			continue;
		}
		*at = r->below;
		if (r->mapped)
			munmap(r, r->mapped);
	}
	if (!room->top)
		room->used = 0;
	errno = saved;
}

static struct record *take_room(
	struct room *room, const struct event *e, const void *caller, size_t size)
{
	const size_t head = ALIGNED(sizeof(struct record)),
		     n = ALIGNED(head + size + KYMO_SCRATCH_SLACK);
	struct record *r;

	end_abandoned(room, caller);
	if (room->used + n <= ROOM - sizeof(*room)) {
		r = (struct record *)(void *)(room->bytes + room->used);
		r->mapped = 0;
		room->used += n;
	} else {
		r = map_pages(n);
		if (!r)
			return NULL;
		r->mapped = n;
	}
	r->below = room->top;
	r->caller = caller;
	r->event = e;
	r->asides = NULL;
	r->step = e->steps;
	r->begin = r->p = (unsigned char *)r + head;
	r->end = r->begin + size;
	r->overflow = false;
	room->top = r;
	return r;
}

/* Records above it were never committed: their callers have ended by now, without an end. */
static void give_back(struct room *room, struct record *r)
{
	const int saved = errno;

	for (struct record *above = room->top, *below; above && above != r; above = below) {
		below = above->below;
		if (above->mapped)
			munmap(above, above->mapped);
	}
	room->top = r->below;
	if (!r->mapped) {
		room->used = (size_t)((unsigned char *)r - room->bytes);
	} else {
		munmap(r, r->mapped);
		errno = saved;
	}
}

/* Hands over a record that is larger than any. */
static void discard(const struct event *e)
{
	static const char nothing[KYMO_PIECE_MIN + KYMO_SCRATCH_SLACK];
	const struct kymo_piece piece = {nothing, KYMO_PIECE_MIN, KYMO_PIECE_SCRATCH};

	e->state.record(&e->watched.probe.event, nothing, KYMO__TOO_LARGE, &piece, 1);
}

/*
 * The probe calls this before the others, if the event has values for filters only. They are on its
 * stack, and overwritten after this. Every event passes: filters are libkymo's.
 */
int lttng_filter(const struct abi_enabler *enabler, const char *values,
	struct abi_probe_context *context, void *filter_context)
{
	const struct event *e = ((const struct abi_recorder *)enabler->child)->priv;
	struct room *room = own ? own : make_room();
	struct record *r = room ? take_room(room, e, context, asides_size(e, values)) : NULL;

	(void)filter_context;
	if (!r) {
		discard(e);
		return 1;
	}
	for (size_t i = 0; i < e->n_asides; i++) {
		const size_t n = put_aside(r->p, (size_t)(r->end - r->p), &e->asides[i], values);

		/* A text that another thread made longer has no room. */
		r->overflow |= !n && aside_size(&e->asides[i], values);
		r->p += n;
	}
	context->size = HAS_VALUES;
	context->ip = r;
	return 0;
}

static int reserve_record(struct abi_record *client)
{
	const struct event *e = ((const struct abi_recorder *)client->client)->priv;
	struct record *asides = client->context->size == HAS_VALUES ? client->context->ip : NULL;
	struct room *room = own ? own : make_room();
	/* Lengths of sequences may be shorter in the program than in a record. */
	struct record *r = room ? take_room(room, e, client,
					  client->data_size + e->n_sequences * sizeof(uint32_t))
				: NULL;

	client->priv = r;
	if (r) {
		r->asides = asides;
		return 0;
	}
	discard(e);
	if (asides)
		give_back(room, asides);
	return -1;
}

/* --- a record --- */

static void put_in_record(struct record *r, const void *src, size_t n)
{
	if (n > (size_t)(r->end - r->p)) {
		r->overflow = true;
		return;
	}
	memcpy(r->p, src, n);
	r->p += n;
}

/* An integer of any size, in the machine's byte order. */
static uint32_t load_length(const void *src, size_t size)
{
	uint64_t n = 0;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	memcpy((char *)&n + sizeof(n) - size, src, size);
#else
	memcpy(&n, src, size);
#endif
	return (uint32_t)n;
}

static void write_bytes(struct abi_record *client, const void *src, size_t len, size_t alignment)
{
	struct record *r = client->priv;

	(void)alignment;
	if (*r->step++ == STEP_COPY) {
		put_in_record(r, src, len);
	} else {
		const uint32_t n = load_length(src, len);

		put_in_record(r, &n, sizeof(n));
	}
}

/* len: with the NUL, as it was measured before. */
static void write_string(struct abi_record *client, const char *src, size_t len)
{
	struct record *r = client->priv;

	r->step++;
	if (len > (size_t)(r->end - r->p)) {
		r->overflow = true;
		return;
	}
	r->p += kymo__copy_text(r->p, src, len - 1);
	*r->p++ = 0;
}

/* len bytes, zeros behind the end of the text. */
static void write_text(struct abi_record *client, const char *src, size_t len)
{
	struct record *r = client->priv;
	size_t n;

	r->step++;
	if (len > (size_t)(r->end - r->p)) {
		r->overflow = true;
		return;
	}
	n = strnlen(src, len);
	memcpy(r->p, src, n);
	memset(r->p + n, 0, len - n);
	r->p += len;
}

static void hand_over(const struct record *r)
{
	const struct kymo_event *event = &r->event->watched.probe.event;
	const struct kymo_event_state *state = event->state;
	const size_t len = (size_t)(r->p - r->begin);
	uint64_t word = 0;

	if (r->asides) {
		const size_t asides = (size_t)(r->asides->p - r->asides->begin);
		const struct kymo_piece pieces[] = {{r->begin, (uint32_t)len, KYMO_PIECE_SCRATCH},
			{r->asides->begin, (uint32_t)asides,
				KYMO_PIECE_SCRATCH | KYMO_PIECE_ASIDE}};

		state->record(event, r->begin, len + asides, pieces + !len, 2 - !len);
	} else if (len > sizeof(word)) {
		state->record_flat(event, r->begin, state->hook, len);
	} else {
		memcpy(&word, r->begin, sizeof(word));
		state->record_word(event, word, state->hook, len);
	}
}

static void commit(struct abi_record *client)
{
	struct record *r = client->priv, *asides = r->asides;

	if (r->overflow || (asides && asides->overflow))
		discard(r->event);
	else
		hand_over(r);
	give_back(own, r);
	if (asides)
		give_back(own, asides);
}

/* For objects that were compiled with _LGPL_SOURCE. */
void lttng_ust_urcu_register(void);
EXPORT void lttng_ust_urcu_register(void)
{
	static struct urcu_reader none;
	struct room *room = own ? own : make_room();

	lttng_ust_urcu_reader = room ? &room->reader : &none;
}

const struct abi_ops lttng_ops = {
	sizeof(lttng_ops), NULL, reserve_record, commit, write_bytes, write_string, write_text};
