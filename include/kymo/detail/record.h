/* SPDX-License-Identifier: MIT */
/*
 * How <kymo/tracepoint.h> works: the functions that put the values of fields into a record, and the
 * record into the tracer's hands.
 */
#ifndef KYMO_DETAIL_RECORD_H
#define KYMO_DETAIL_RECORD_H

#pragma GCC system_header

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kymo/tracepoint.h>

#include <kymo/detail/fields.h>

/* The place of the next byte of a record, and the part of the record that is already closed. */
struct kymo__cursor {
	unsigned char *p;     /* in the scratch buffer */
	unsigned char *start; /* of the part of the scratch buffer that is not in the list yet */
	size_t len;	      /* bytes in the list, or KYMO__TOO_LARGE and more */
	size_t n;	      /* entries in the list */
	struct kymo_piece *list;
};

/*
 * No sub-buffer has room for this: the event is discarded as too large, and counted. Sums that stop
 * at this value do not wrap.
 */
#define KYMO__TOO_LARGE (SIZE_MAX / 3)

/*
 * Rejects a value for a field that is narrower than its type and than int: no trace would show the
 * loss. Compilers that have the attribute report an error.
 */
KYMO__C_BEGIN
#ifdef __has_attribute
#if __has_attribute(__error__)
void kymo__too_wide(void) __attribute__((
	__error__("the value is wider than its field: use a wider field, or a cast")));
#define KYMO__REFUSES_WIDE
#endif
#endif
KYMO__C_END
#ifndef KYMO__REFUSES_WIDE
static inline KYMO__QUIET __attribute__((__unused__)) void kymo__too_wide(void)
{
}
#endif

#ifdef __cplusplus
extern "C++" {
template <typename kymo__T> struct kymo__same {
	typedef kymo__T type;
};
template <bool condition> struct kymo__if {
	typedef int type;
};
template <> struct kymo__if<false> {
};
/* Sizes of numbers and of enumerations, 0 of other types. */
template <typename kymo__T> struct kymo__bytes {
	enum { count = __is_enum(kymo__T) ? sizeof(kymo__T) : 0 };
};
#define KYMO__BYTES(T)                                                                             \
	template <> struct kymo__bytes<T> {                                                        \
		enum { count = sizeof(T) };                                                        \
	};
KYMO__BYTES(long)
KYMO__BYTES(unsigned long)
KYMO__BYTES(long long)
KYMO__BYTES(unsigned long long)
KYMO__BYTES(float)
KYMO__BYTES(double)
KYMO__BYTES(long double)
#undef KYMO__BYTES

template <typename kymo__T>
static inline KYMO__QUIET __attribute__((__always_inline__)) kymo__T kymo__fit(
	typename kymo__same<kymo__T>::type v)
{
	return v;
}

template <typename kymo__T, typename kymo__V> struct kymo__is_wide {
	enum {
		value = kymo__bytes<kymo__V>::count > sizeof(kymo__T) &&
			kymo__bytes<kymo__V>::count > sizeof(int)
	};
};

template <typename kymo__T, typename kymo__V,
	typename kymo__if<kymo__is_wide<kymo__T, kymo__V>::value>::type = 0>
static inline KYMO__QUIET __attribute__((__always_inline__)) kymo__T kymo__fit(kymo__V v)
{
	kymo__too_wide();
	return static_cast<kymo__T>(v);
}

/* An `enum class` has no conversion to a number. */
template <typename kymo__T, typename kymo__V,
	typename kymo__if<__is_enum(kymo__V) && !kymo__is_wide<kymo__T, kymo__V>::value>::type = 0>
static inline KYMO__QUIET __attribute__((__always_inline__)) kymo__T kymo__fit(kymo__V v)
{
	return static_cast<kymo__T>(v);
}

static inline KYMO__QUIET __attribute__((__always_inline__)) const char *kymo__text(const char *s)
{
	return s;
}
}
#endif

#define KYMO__DEFINE_PUT(T)                                                                        \
	static inline KYMO__QUIET __attribute__((__always_inline__,                                \
		__unused__)) void kymo__put_##T(struct kymo__cursor *c, kymo__##T v)               \
	{                                                                                          \
		memcpy(c->p, &v, sizeof(v));                                                       \
		c->p += sizeof(v);                                                                 \
	}

KYMO__DEFINE_PUT(i8)
KYMO__DEFINE_PUT(i16)
KYMO__DEFINE_PUT(i32)
KYMO__DEFINE_PUT(i64)
KYMO__DEFINE_PUT(u8)
KYMO__DEFINE_PUT(u16)
KYMO__DEFINE_PUT(u32)
KYMO__DEFINE_PUT(u64)
KYMO__DEFINE_PUT(x8)
KYMO__DEFINE_PUT(x16)
KYMO__DEFINE_PUT(x32)
KYMO__DEFINE_PUT(x64)
KYMO__DEFINE_PUT(net16)
KYMO__DEFINE_PUT(net32)
KYMO__DEFINE_PUT(net64)
KYMO__DEFINE_PUT(netx16)
KYMO__DEFINE_PUT(netx32)
KYMO__DEFINE_PUT(netx64)
KYMO__DEFINE_PUT(f32)
KYMO__DEFINE_PUT(f64)
KYMO__DEFINE_PUT(truth)
KYMO__DEFINE_PUT(ptr)

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_piece(
	struct kymo__cursor *c, const void *ptr, size_t len, uint32_t flags)
{
	struct kymo_piece *piece = c->list + c->n;

	if (c->p != c->start) {
		piece->ptr = c->start;
		piece->len = (uint32_t)(c->p - c->start);
		piece->flags = KYMO_PIECE_SCRATCH;
		c->len += piece->len;
		c->start = c->p;
		piece++;
	}
	if (len) {
		piece->ptr = ptr;
		/* If the length does not match, the sum is too large anyway. */
		piece->len = (uint32_t)len;
		piece->flags = flags;
		if (len < KYMO__TOO_LARGE && c->len < KYMO__TOO_LARGE)
			c->len += len;
		else
			c->len = KYMO__TOO_LARGE;
		piece++;
	}
	c->n = (size_t)(piece - c->list);
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_bytes(
	struct kymo__cursor *c, const void *ptr, size_t len)
{
	if (len <= KYMO__INLINE_MAX) {
		if (len)
			memcpy(c->p, ptr, len);
		c->p += len;
	} else {
		kymo__put_piece(c, ptr, len, 0);
	}
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_sequence(
	struct kymo__cursor *c, const void *ptr, size_t n, size_t size)
{
	uint32_t count = (uint32_t)n;

	memcpy(c->p, &count, sizeof(count));
	c->p += sizeof(count);
	if (n <= UINT32_MAX / size)
		kymo__put_bytes(c, ptr, n * size);
	else
		c->len = KYMO__TOO_LARGE;
}

/*
 * Copies a word of text. Returns a value in which the top bit of a byte is set if this byte, or one
 * below it, is 0. Other bits mean nothing.
 */
static inline KYMO__QUIET __attribute__((__always_inline__, __unused__)) uint64_t kymo__copy_word(
	unsigned char *to, const char *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	__asm__("" : "+r"(word)); /* tests the copied value */
	memcpy(to, &word, sizeof(word));
	return (word - UINT64_MAX / 255) & ~word;
}

/*
 * Copies n bytes of text, by words if there is at least one. The last word overlaps the one before;
 * it is copied early, because its address waits for n. Another thread may change the text
 * meanwhile: the copy ends at a copied NUL. Returns its length.
 */
static inline KYMO__QUIET __attribute__((__unused__)) size_t kymo__copy_text(
	unsigned char *to, const char *from, size_t n)
{
	const size_t size = sizeof(uint64_t);
	uint64_t nul;
	size_t i = 0;

	if (n < size) {
		while (i < n && (to[i] = (unsigned char)((const volatile char *)from)[i]) != 0)
			i++;
		return i;
	}
	nul = kymo__copy_word(to, from) | kymo__copy_word(to + n - size, from + n - size);
	for (i = size; i < n - size; i += size)
		nul |= kymo__copy_word(to + i, from + i);
	if (__builtin_expect((nul & (UINT64_MAX / 255 << 7)) != 0, 0)) {
		to[n] = 0;
		n = strlen((const char *)to);
	}
	return n;
}

/*
 * Puts n bytes of text without a NUL, and a NUL. In a piece, the writer replaces a NUL that was not
 * there when the text was measured.
 */
static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_chars(
	struct kymo__cursor *c, const char *s, size_t n, size_t inline_max)
{
	if (n <= inline_max)
		c->p += kymo__copy_text(c->p, s, n);
	else
		kymo__put_piece(c, s, n, KYMO_PIECE_TEXT);
	*c->p++ = 0;
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_string(
	struct kymo__cursor *c, const char *s, size_t inline_max)
{
	size_t n;

	if (!s)
		s = "(null)";
	n = strlen(s);
	/* A text that the compiler knows never changes: its NUL is copied with it. */
	if (__builtin_constant_p(n) && n <= inline_max) {
		memcpy(c->p, s, n + 1);
		c->p += n + 1;
	} else {
		kymo__put_chars(c, s, n, inline_max);
	}
}

#ifdef __cplusplus
extern "C++" {
/* Text that knows its length: std::string, std::string_view and the like. It ends at a NUL. */
template <typename kymo__S>
static inline KYMO__QUIET auto kymo__put_string(kymo__cursor *c, const kymo__S &s,
	size_t inline_max) -> decltype(s.length(), kymo__text(s.data()), void())
{
	const char *text = kymo__text(s.data());
	size_t n = static_cast<size_t>(s.length());

	kymo__put_chars(c, text, n ? strnlen(text, n) : 0, inline_max);
}
}
#endif

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_strings(
	struct kymo__cursor *c, const char *const *strings, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		kymo__put_string(c, strings[i], KYMO_PIECE_MIN - 1);
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_string_sequence(
	struct kymo__cursor *c, const char *const *strings, size_t n)
{
	uint32_t count = (uint32_t)n;

	memcpy(c->p, &count, sizeof(count));
	c->p += sizeof(count);
	if (n <= KYMO_SEQ_STRINGS_MAX)
		kymo__put_strings(c, strings, n);
	else
		c->len = KYMO__TOO_LARGE;
}

/*
 * If there can be no pieces, all fields are scalars, and the record takes all of the room. Both
 * are constants.
 */
static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__always_inline__, __unused__)) void
kymo__hand_over(const struct kymo_event *event, struct kymo__cursor *c, unsigned char *room,
	size_t size, int may_have_pieces)
{
	struct kymo_event_state *state = event->state;
	uint64_t word = 0;

	if (!may_have_pieces && size <= sizeof(word)) {
		memcpy(&word, room,
			size <= sizeof(word) ? size : 0); /* for compilers that look at dead code */
		(state->record_word)(event, word, state->hook, size);
	} else if (!may_have_pieces) {
		(state->record_flat)(event, room, state->hook, size);
	} else if (!c->n) {
		(state->record_flat)(event, room, state->hook, c->len + (size_t)(c->p - room));
	} else {
		kymo__put_piece(c, NULL, 0, 0);
		(state->record)(event, room, c->len, c->list, c->n);
	}
}

/*
 * Fields that have fields (<kymo/nested.h>) are put by functions, whose temporaries are to live
 * until the record is handed over. So these functions do not return before. In the list of a record
 * there are two entries for such a field: its function with its data, and KYMO__NESTED among the
 * flags of the first. kymo__walk goes through the list and calls the functions. Each puts a part of
 * the record, whose list it passes to kymo__descend, which goes through that in the same way and
 * returns to the rest of the list above. `finish`, at the end of all lists, gets the entries that
 * were found, in the order of the fields.
 */
struct KYMO__HIDDEN kymo__walk;
typedef void (*kymo__value_fn)(struct kymo__cursor *at, struct kymo__walk *walk, void *data);

struct kymo__level {
	struct kymo_piece *at, *end;
	struct kymo__level *above;
};

struct KYMO__HIDDEN kymo__walk {
	const struct kymo_event *event;
	void (*finish)(struct kymo__walk *walk);
	size_t number; /* for `finish` */
	struct kymo__level *level;
	unsigned char *p;	 /* the free part of the scratch buffer */
	struct kymo_piece *free; /* the free part of the list */
	struct kymo_piece *out;	 /* n entries that have len bytes, KYMO__TOO_LARGE or more */
	size_t n, len;
	size_t bytes; /* in the entries, if the record is not too large */
};

#define KYMO__NESTED                                                                               \
	0x10000 /* ptr: data; len: number of values; the next entry: function, size of a value */
#define KYMO__MARK 0x20000 /* sets `number` to the number of bytes before it */

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__walk_piece(
	struct kymo__walk *w, const struct kymo_piece *piece)
{
	struct kymo_piece *last = w->out + w->n - 1;

	w->bytes += piece->len;
	if (w->n && (last->flags & piece->flags & KYMO_PIECE_SCRATCH) &&
		(const unsigned char *)last->ptr + last->len == piece->ptr)
		last->len += piece->len;
	else
		w->out[w->n++] = *piece;
}

static KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) void kymo__walk_on(
	struct kymo__walk *w)
{
	struct kymo__level *level = w->level;
	struct kymo__cursor c;
	struct kymo_piece *piece;
	kymo__value_fn put;
	void *data;

	for (; level; level = level->above) {
		while (level->at != level->end) {
			piece = level->at;
			if (piece->flags == KYMO__MARK) {
				w->number = w->bytes;
			} else if (piece->flags != KYMO__NESTED) {
				kymo__walk_piece(w, piece);
			} else if (!piece->len) {
				level->at++;
			} else {
				data = (void *)(uintptr_t)piece->ptr;
				memcpy(&put, &piece[1].ptr, sizeof(put));
				piece->ptr = (const char *)piece->ptr + piece[1].len;
				piece->len--;
				c.p = c.start = w->p;
				c.len = c.n = 0;
				c.list = w->free;
				w->level = level;
				(put)(&c, w, data);
				return;
			}
			level->at++;
		}
	}
	(w->finish)(w);
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__descend(
	struct kymo__walk *w, struct kymo__cursor *c)
{
	struct kymo__level level;

	kymo__put_piece(c, NULL, 0, 0);
	w->len = c->len < KYMO__TOO_LARGE && w->len < KYMO__TOO_LARGE ? w->len + c->len
								      : KYMO__TOO_LARGE;
	w->p = c->p;
	w->free = c->list + c->n;
	level.at = c->list;
	level.end = w->free;
	level.above = w->level;
	w->level = &level;
	kymo__walk_on(w);
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__start_walk(
	const struct kymo_event *event, struct kymo__cursor *c, size_t list_size,
	void (*finish)(struct kymo__walk *), size_t number)
{
	struct kymo__walk w = {
		event, finish, number, NULL, NULL, NULL, c->list + list_size / 2, 0, 0, 0};

	kymo__descend(&w, c);
}

static KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) void kymo__record_pieces(
	struct kymo__walk *w)
{
	struct kymo_event_state *state = w->event->state;

	if (w->n == 1 && w->out->flags == KYMO_PIECE_SCRATCH)
		(state->record_flat)(w->event, w->out->ptr, state->hook, w->len);
	else
		(state->record)(w->event, w->out->ptr, w->len, w->out, w->n);
}

/* Preserves errno, which printf() sets for a character that it cannot convert, for example. */
static inline KYMO__QUIET __attribute__((__unused__, __format__(__printf__, 3, 0))) char *
kymo__format(char *small, size_t size, const char *format, va_list ap)
{
	int saved = errno, n;
	va_list again;
	char *large = small;

	va_copy(again, ap);
	n = __builtin_vsnprintf(small, size, format, ap);
	if (n < 0) {
		small[0] = 0;
	} else if ((size_t)n >= size) {
		large = (char *)__builtin_malloc((size_t)n + 1);
		errno = saved; /* %m */
		if (large)
			__builtin_vsnprintf(large, (size_t)n + 1, format, again);
		else
			large = (char *)memcpy(small, "(out of memory)", sizeof("(out of memory)"));
	}
	va_end(again);
	errno = saved;
	return large;
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__format_end(
	const char *small, char *msg)
{
	int saved = errno;

	if (msg != small)
		__builtin_free(msg);
	errno = saved;
}

static inline KYMO__QUIET __attribute__((__cold__, __format__(__printf__, 2, 3))) void kymo__tracef(
	const struct kymo_event *event, const char *format, ...)
{
	char small[512], *msg;
	va_list ap;

	va_start(ap, format);
	msg = kymo__format(small, sizeof(small), format, ap);
	va_end(ap);
	KYMO__RECORD(event, tracef, kymo_string(msg, msg))
	kymo__format_end(small, msg);
}

static inline KYMO__QUIET __attribute__((__cold__, __format__(__printf__, 3, 4))) void
kymo__tracelog(const struct kymo_event *event, const char *func, const char *format, ...)
{
	char small[512], *msg;
	va_list ap;

	va_start(ap, format);
	msg = kymo__format(small, sizeof(small), format, ap);
	va_end(ap);
	KYMO__RECORD(event, tracelog, kymo_i32(line, (int32_t)event->line),
		kymo_string(file, event->file), kymo_string(func, func), kymo_string(msg, msg))
	kymo__format_end(small, msg);
}

#endif
