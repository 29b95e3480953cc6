/* SPDX-License-Identifier: MIT */
/*
 * The structures that programs and tracepoint providers share with LTTng-UST's library when they
 * were compiled with its headers (2.13 and later, the version 3 of its interface for providers).
 * Their layout is fixed. Most begin with their size: members that a later version appends are not
 * used here.
 */
#ifndef LTTNG_ABI_H
#define LTTNG_ABI_H

#include <stddef.h>
#include <stdint.h>

#define ABI_PROVIDER_MAJOR 3

/*
 * One function to call at a tracepoint, and its first argument; the last one in an array has no
 * function.
 */
struct abi_probe {
	void (*func)(void);
	void *data;
};

struct abi_tracepoint {
	uint32_t size;
	const char *provider;
	const char *event;
	int state; /* not 0: the program calls `probes` */
	struct abi_probe *probes;
	int *provider_ref;
	const char *signature; /* the text of its arguments */
};

enum abi_type_kind {
	ABI_INTEGER,
	ABI_STRING,
	ABI_FLOAT,
	ABI_DYNAMIC,
	ABI_ENUM,
	ABI_ARRAY,
	ABI_SEQUENCE,
	ABI_STRUCT,
	ABI_FIXED_BLOB, /* 2.16 */
	ABI_VARIABLE_BLOB,
};

struct abi_type {
	int kind;
	uint32_t size; /* of the structure, in all kinds */
};

struct abi_integer {
	struct abi_type type;
	unsigned bits;
	unsigned short alignment;
	unsigned is_signed : 1;
	unsigned swapped : 1;
	unsigned base;
};

struct abi_float {
	struct abi_type type;
	unsigned exponent_bits;
	unsigned mantissa_bits;
	unsigned short alignment;
	unsigned swapped : 1;
};

struct abi_enum_value {
	unsigned long long value;
	unsigned is_signed : 1;
};

struct abi_enum_entry {
	uint32_t size;
	struct abi_enum_value first, last;
	const char *label;
	unsigned options; /* 1: automatic */
};

struct abi_enum_desc {
	uint32_t size;
	const char *name;
	const struct abi_enum_entry *const *entries;
	unsigned n_entries;
};

struct abi_enum {
	struct abi_type type;
	const struct abi_enum_desc *desc;
	const struct abi_type *container;
};

struct abi_array {
	struct abi_type type;
	const struct abi_type *element;
	unsigned length;
	unsigned alignment;
	int encoding; /* not 0: text */
};

struct abi_sequence {
	struct abi_type type;
	const char *length_name;
	const struct abi_type *element;
	unsigned alignment;
	int encoding;
};

struct abi_fixed_blob {
	struct abi_type type;
	unsigned length;
};

struct abi_field {
	uint32_t size;
	const char *name;
	const struct abi_type *type;
	unsigned not_written : 1;
	unsigned not_filtered : 1;
};

struct abi_class {
	uint32_t size;
	const struct abi_field *const *fields;
	size_t n_fields;
	void (*probe)(void);
	const char *signature;
};

struct abi_event {
	uint32_t size;
	const char *name;
	const struct abi_provider *provider;
	const struct abi_class *cls;
	const int **loglevel;
	const char **model_emf_uri;
};

struct abi_provider {
	uint32_t size;
	const char *name;
	const struct abi_event *const *events;
	unsigned n_events;
	uint32_t major;
	uint32_t minor;
};

/* The arguments of a probe, and the functions that it calls. */
struct abi_session {
	uint32_t size;
	void *priv;
	int active;
};

struct abi_channel {
	uint32_t size;
	void *priv;
	int type;
	void *child;
	int enabled;
	struct abi_session *session;
};

struct abi_probe_context {
	uint32_t size;
	void *ip;
};

/* Of one record: on the stack of the probe, which has filled in all but `priv`. */
struct abi_record {
	uint32_t size;
	void *client; /* struct abi_recorder */
	size_t data_size;
	int largest_align;
	struct abi_probe_context *context;
	void *priv; /* ours */
};

struct abi_ops {
	uint32_t size;
	void *priv;
	int (*reserve)(struct abi_record *record);
	void (*commit)(struct abi_record *record);
	void (*write)(struct abi_record *record, const void *src, size_t len, size_t alignment);
	void (*write_string)(struct abi_record *record, const char *src, size_t len);
	void (*write_text)(struct abi_record *record, const char *src, size_t len);
};

struct abi_buffer {
	uint32_t size;
	struct abi_channel *parent;
	void *priv;
	const struct abi_ops *ops;
};

struct abi_enabler {
	uint32_t size;
	void *priv;
	int type; /* 0: of a recorder */
	void *child;
	int enabled;
	int filtered; /* call `filter`, with the values of the fields, before the record is made */
	int (*filter)(const struct abi_enabler *enabler, const char *values,
		struct abi_probe_context *context, void *filter_context);
};

struct abi_recorder {
	uint32_t size;
	struct abi_enabler *parent;
	void *priv;
	struct abi_buffer *buffer;
};

#endif
