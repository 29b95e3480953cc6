/* SPDX-License-Identifier: MIT */
/*
 * The static description of an event, which a tracepoint puts into the program's data and the
 * tracer library reads. This is a binary interface between programs and libraries compiled at
 * different times. Structures begin with their size; new members are appended; a library ignores an
 * event with kinds that it does not know.
 *
 * Programs include <kymo/tracepoint.h>, which includes this.
 */
#ifndef KYMO_TYPES_H
#define KYMO_TYPES_H

#pragma GCC system_header

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
/*
 * In C++ a variable has the visibility of its type. Tracepoints in templates and inline functions
 * must belong to the object: shared ones could not be unloaded, nor be named in
 * position-independent assembly.
 */
#define KYMO__HIDDEN __attribute__((__visibility__("hidden")))
#else
#define KYMO__HIDDEN
#endif

/*
 * For functions that call the tracer, or a provider, by a pointer. These may be in other objects,
 * which the checks of clang's control flow integrity (-fsanitize=cfi) do not know.
 */
#ifdef __clang__
#define KYMO__CALLS_OTHERS __attribute__((__no_sanitize__("cfi")))
#else
#define KYMO__CALLS_OTHERS
#endif

/*
 * For all functions of the headers: they do not call the hooks that compilers insert
 * (-finstrument-functions), because a program's own hooks may record events.
 */
#define KYMO__QUIET __attribute__((__no_instrument_function__))

/* Log levels: those of syslog, and seven degrees of debugging between INFO and DEBUG. */
enum kymo_loglevel {
	KYMO_EMERG = 0,
	KYMO_ALERT = 1,
	KYMO_CRIT = 2,
	KYMO_ERR = 3,
	KYMO_WARNING = 4,
	KYMO_NOTICE = 5,
	KYMO_INFO = 6,
	KYMO_DEBUG_SYSTEM = 7,
	KYMO_DEBUG_PROGRAM = 8,
	KYMO_DEBUG_PROCESS = 9,
	KYMO_DEBUG_MODULE = 10,
	KYMO_DEBUG_UNIT = 11,
	KYMO_DEBUG_FUNCTION = 12,
	KYMO_DEBUG_LINE = 13,
	KYMO_DEBUG = 14
};

/*
 * The layout of a field's bytes in a record. Records are packed: no padding anywhere. Scalars (INT
 * .. ENUM) take `size` bytes; byte order is the machine's unless KYMO_FIELD_NETWORK.
 */
enum kymo_field_kind {
	KYMO_FIELD_END = 0,	 /* ends a table of fields */
	KYMO_FIELD_INT = 1,	 /* two's complement, size 1, 2, 4, 8 */
	KYMO_FIELD_UINT = 2,	 /* size 1, 2, 4, 8 */
	KYMO_FIELD_FLOAT = 3,	 /* IEEE 754, size 4, 8 */
	KYMO_FIELD_BOOL = 4,	 /* size 1, value 0 or 1 */
	KYMO_FIELD_ENUM = 5,	 /* integer, signed with KYMO_FIELD_SIGNED; labels in `ext` */
	KYMO_FIELD_STRING = 6,	 /* bytes of UTF-8, then one NUL */
	KYMO_FIELD_ARRAY = 7,	 /* `count` elements of kind `elem` */
	KYMO_FIELD_SEQUENCE = 8, /* uint32_t number of elements, then the elements of kind `elem` */
	KYMO_FIELD_TEXT = 9,	 /* `count` bytes of text; ends early at a NUL */
	KYMO_FIELD_TEXT_SEQUENCE = 10, /* uint32_t number of bytes, then the text */
	KYMO_FIELD_BLOB = 11,	       /* uint32_t number of bytes, then the bytes */
	KYMO_FIELD_MEDIA =
		12, /* size 1, value 0: the media type, a text in `ext`, of the BLOB behind it */
	KYMO_FIELD_STRUCT = 13, /* its members, in `ext`; also possible as element */
	KYMO_FIELD_VARIANT =
		14 /* uint8_t number of an option in `ext`, then that; number of options: none */
};

enum kymo_field_flags {
	KYMO_FIELD_HEX = 1,	/* shown in base 16 */
	KYMO_FIELD_NETWORK = 2, /* big endian on all machines */
	KYMO_FIELD_SIGNED = 4,	/* ENUM only: the integer is signed */
	/* excluded field: not recorded, for filters only; such fields come last */
	KYMO_FIELD_ASIDE = 8
};

/*
 * One label of an enumeration: the values lo .. hi, both included. Signed ones hold their bits.
 * KYMO_LABEL_AUTO for lo and hi: the next value after the previous label's, initially 0.
 */
struct kymo_enum_label {
	const char *label;
	uint64_t lo, hi;
};

#define KYMO_LABEL_AUTO 1, 0

struct kymo_enum_type {
	const char *name;
	const struct kymo_enum_label *labels;
	uint32_t n_labels;
	uint32_t is_signed;
};

struct KYMO__HIDDEN kymo_field {
	uint8_t kind;	/* enum kymo_field_kind */
	uint8_t elem;	/* ARRAY, SEQUENCE: kind of an element: INT .. STRING, STRUCT */
	uint8_t size;	/* bytes of the scalar, or of an element */
	uint8_t flags;	/* enum kymo_field_flags, of the scalar or of an element */
	uint32_t count; /* ARRAY, TEXT: number of elements */
	const char *name;
	/*
	 * ENUM: struct kymo_enum_type; STRUCT, VARIANT: struct kymo_field[], which ends with
	 * KYMO_FIELD_END; both also of elements. MEDIA: char[].
	 */
	const void *ext;
};

struct KYMO__HIDDEN kymo_event;

/*
 * A part of a record that is copied directly from the program's memory. Ownership: borrowed until
 * the call that receives it returns.
 */
struct kymo_piece {
	const void *ptr;
	uint32_t len;	/* bytes; at least KYMO_PIECE_MIN unless SCRATCH */
	uint32_t flags; /* enum kymo_piece_flags */
};

#define KYMO_PIECE_MIN 16

enum kymo_piece_flags {
	KYMO_PIECE_SCRATCH = 1, /* KYMO_SCRATCH_SLACK bytes more may be read (and are ignored) */
	KYMO_PIECE_TEXT = 2,	/* a NUL among the bytes is replaced by '#' */
	KYMO_PIECE_ASIDE = 4	/* not recorded: excluded fields; such pieces come last */
};

#define KYMO_SCRATCH_SLACK 16

/*
 * Records one event. If n_pieces is 0, payload is its packed fields (len bytes; KYMO_SCRATCH_SLACK
 * more may be read). Else `pieces`, in order, are the fields, and len is the sum of their lengths.
 * Never blocks (unless the user has allowed it), never fails, makes no system call and does not
 * change errno. A record that finds no room is counted as discarded.
 */
typedef void (*kymo_record_fn)(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/*
 * The same for a record without pieces, called with its event's `hook`. _word: for a record of at
 * most 8 bytes, which are in `value` as they would be in memory.
 */
typedef void (*kymo_flat_fn)(
	const struct kymo_event *event, const void *payload, void *hook, size_t len);
typedef void (*kymo_word_fn)(
	const struct kymo_event *event, uint64_t value, void *hook, size_t len);

/* The part of an event that changes. The tracer owns it. Programs only read it. */
struct KYMO__HIDDEN kymo_event_state {
	uint32_t enabled; /* enum kymo_enabled; if not 0, call one of these: */
	uint32_t reserved;
	kymo_record_fn record;
	kymo_flat_fn record_flat;
	kymo_word_fn record_word;
	void *hooks; /* for the tracer */
	void *hook;  /* for the tracer; argument of record_flat and record_word */
};

enum kymo_enabled {
	KYMO_ENABLED = 1,
	KYMO_ENABLED_FILTER = 2 /* in addition, a filter may read excluded fields */
};

enum kymo_event_kind {
	KYMO_EVENT_PLAIN = 1,
	KYMO_EVENT_QUERY = 2, /* kymo_event_enabled(): follows the events of its name; not listed */
	/*
	 * a tracepoint whose events may be in other objects: as QUERY, and `hook` of its state is
	 * the probe of the first of these events
	 */
	KYMO_EVENT_LINK = 3
};

enum kymo_event_flags {
	/* a LINK is a kymo_link_event; the state of a PLAIN event is in a kymo_probe_state */
	KYMO_EVENT_CHAINED = 1
};

struct KYMO__HIDDEN kymo_event {
	uint32_t size; /* of this structure */
	uint16_t kind; /* enum kymo_event_kind */
	int16_t loglevel;
	const char *provider;
	const char *name;
	const struct kymo_field *fields; /* ends with KYMO_FIELD_END; NULL for KYMO_EVENT_QUERY */
	struct kymo_event_state *state;
	const char *file;
	uint32_t line;
	uint32_t flags; /* enum kymo_event_flags */
};

/*
 * A LINK calls the probes of its name with the same signature: the text of the tracepoint's
 * arguments. Each probe calls the next one.
 */
struct KYMO__HIDDEN kymo_link_event {
	struct kymo_event event;
	const int *provider; /* for the linker: takes the provider from an archive; may be NULL */
	const char *signature;
};

struct KYMO__HIDDEN kymo_probe_state {
	struct kymo_event_state state;
	const char *signature;
	void *next; /* the tracer's: another probe, or NULL */
};

/*
 * A PLAIN event that LINKs call; event.size identifies it. They pass the arguments of the
 * tracepoint, and the probe makes the record from them.
 */
struct KYMO__HIDDEN kymo_probe_event {
	struct kymo_event event;
	void (*probe)(void);
	const int *loglevel;		  /* replaces event.loglevel; may be NULL */
	const char *const *model_emf_uri; /* URI of a model of the event (Eclipse); may be NULL */
};

/*
 * A PLAIN event whose owner is called when it is enabled or disabled; event.size identifies it.
 * `switched` is called under the tracer's lock, in any thread, and in the child of a fork before
 * anything else runs there. It stores its data, calls no function of the tracer, and does not wait
 * for a thread that does. enabled: as in the event's state.
 */
struct KYMO__HIDDEN kymo_watched_event {
	struct kymo_probe_event probe;
	void (*switched)(const struct kymo_event *event, uint32_t enabled);
};

/*
 * The events of one executable or shared object: an array of pointers, between two symbols made by
 * the linker. Entries may be NULL or repeated.
 */
struct KYMO__HIDDEN kymo_object {
	uint32_t size;	  /* of this structure */
	uint32_t version; /* KYMO_ABI_VERSION */
	const struct kymo_event *const *begin, *const *end;
	void *cookie; /* for the tracer; initially NULL */
};

#define KYMO_ABI_VERSION 1

/*
 * An ELF note that an object has, once or more, so that a tracer which is loaded later finds the
 * object: type KYMO_NOTE_LATE, two words: the distances from each word to the begin and to the end
 * of a table of functions to call.
 */
#define KYMO_NOTE_NAME "kymo.loaded"
#define KYMO_NOTE_LATE 1

/* A value of the program that records may contain: <kymo/context.h>. */
enum kymo_context_type {
	KYMO_CONTEXT_I64 = 1,
	KYMO_CONTEXT_U64 = 2,
	KYMO_CONTEXT_F64 = 3,
	KYMO_CONTEXT_STRING = 4 /* the first 255 bytes are recorded */
};

/* Without macros of the program's, which some have for the names of such types. */
#pragma push_macro("i64")
#pragma push_macro("u64")
#pragma push_macro("f64")
#pragma push_macro("string")
#undef i64
#undef u64
#undef f64
#undef string
union kymo_context_value {
	int64_t i64;
	uint64_t u64;
	double f64;
	const char *string; /* NULL means ""; read before the next call of the function */
};
#pragma pop_macro("i64")
#pragma pop_macro("u64")
#pragma pop_macro("f64")
#pragma pop_macro("string")

/* The program owns it, and keeps it from register to unregister. */
struct kymo_context {
	uint32_t size;	  /* of this structure */
	uint32_t type;	  /* enum kymo_context_type */
	const char *name; /* "provider:name": letters, digits, any of "_.-" */
	void (*get)(void *data, union kymo_context_value *value);
	void *data;
};

/* Functions of the tracer; programs call those in <kymo/context.h>. */
int kymo_app_context_add(struct kymo_context *context);
void kymo_app_context_remove(struct kymo_context *context);
void kymo_contexts_invalidate(void);
/*
 * For libraries that install a filter of system calls for a program. kymo_contexts_keep(1), before
 * the call: threads keep their contexts from now on, because to read them needs system calls.
 * Returns the value before; if the call fails, pass that to kymo_contexts_keep.
 */
int kymo_contexts_keep(int keep);

/*
 * Functions of the tracer, for libraries that call unshare(2) or setns(2) for a program: the kernel
 * lets only processes of one thread enter another user namespace. kymo_app_threads_end ends the
 * tracer's threads if the program has one thread, errno is that of a call which failed for its
 * number of threads, and they can be ended. Then it returns 1, and after the call was repeated
 * kymo_app_threads_start must follow, which registers the program again; events in between are not
 * recorded. Else it returns 0 and keeps errno.
 */
int kymo_app_threads_end(void);
void kymo_app_threads_start(void);

/*
 * A function that reports a program's state to sessions that request it: <kymo/statedump.h>. The
 * program owns it, and keeps it from register to unregister.
 */
struct kymo_statedump {
	uint32_t size; /* of this structure */
	uint32_t reserved;
	void (*dump)(void *data);
	void *data;
};

/*
 * Set and end a state event's value, from its fields, for <kymo/state.h>. The key follows the first
 * field and has key_len bytes. To end a key: the key is the only field, and name_len is how many of
 * the first letters of this event's name are the name of the event to end.
 */
void kymo_app_state_set(const struct kymo_event *event, const struct kymo_piece *pieces,
	size_t n_pieces, size_t len, size_t key_len);
void kymo_app_state_end(const struct kymo_event *event, size_t name_len,
	const struct kymo_piece *pieces, size_t n_pieces, size_t len);

/*
 * Returns the calling thread's number, as the program sees it (gettid); for <kymo/span.h>. Safe in
 * signal handlers.
 */
uint32_t kymo_thread_id(void);

/*
 * Functions of the tracer for it. object: the object that registers it; when that is unloaded, it
 * is unregistered.
 */
int kymo_app_statedump_add(struct kymo_statedump *dump, struct kymo_object *object);
void kymo_app_statedump_remove(struct kymo_statedump *dump);

/*
 * Reports to the daemons that the program has an event which it cannot record. event: its name, or
 * a pattern ("provider:*"). For libraries that stand in for another tracer's. Takes no lock.
 */
void kymo_app_left_out(const char *event, const char *why);

#ifdef __cplusplus
}
#endif

#endif
