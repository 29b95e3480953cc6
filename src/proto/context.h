/* SPDX-License-Identifier: MIT */
/*
 * Contexts: values that a channel records before each event's fields. One table lists them; the
 * session daemon, the tracer and the trace's description use it.
 */
#ifndef PROTO_CONTEXT_H
#define PROTO_CONTEXT_H

#include "proto/desc.h"

/* In messages: numbers are never reused. */
enum ky_ctx {
	KY_CTX_NONE = 0,
	KY_CTX_CPU_ID = 1,
	KY_CTX_VPID = 2,
	KY_CTX_VTID = 3,
	KY_CTX_PTHREAD_ID = 4,
	KY_CTX_PROCNAME = 5,
	KY_CTX_IP = 6,
	KY_CTX_VUID = 7,
	KY_CTX_VEUID = 8,
	KY_CTX_VSUID = 9,
	KY_CTX_VGID = 10,
	KY_CTX_VEGID = 11,
	KY_CTX_VSGID = 12,
	KY_CTX_CGROUP_NS = 13,
	KY_CTX_IPC_NS = 14,
	KY_CTX_MNT_NS = 15,
	KY_CTX_NET_NS = 16,
	KY_CTX_PID_NS = 17,
	KY_CTX_TIME_NS = 18,
	KY_CTX_USER_NS = 19,
	KY_CTX_UTS_NS = 20,
	KY_CTX_PERF = 21,      /* argument: "TYPE:CONFIG" of perf_event_attr, hexadecimal */
	KY_CTX_APP = 22,       /* argument: "PROVIDER:NAME" */
	KY_CTX_CALLSTACK = 23, /* argument: most frames, decimal */
	KY_CTX_KINDS
};

#define KY_CTX_PROCNAME_SIZE 16
#define KY_CTX_STRING_MAX    256u
#define KY_CTX_DEPTH_DEFAULT 16u
#define KY_CTX_DEPTH_MAX     64u
#define KY_CTX_MAX	     64u   /* of a channel */
#define KY_CTX_PERF_MAX	     8u	   /* of a channel */
#define KY_CTX_RECORD_MAX    4096u /* bytes that the contexts of a channel may take in a record */
#define KY_CTX_SPEC_MAX	     320u  /* bytes of what a user writes, with its NUL */

/* A row of the table. Its texts are not pointers, which would be relocated in each program. */
struct ky_ctx_type {
	char name[20]; /* as users write it; of a family: what stands before the argument */
	uint8_t kind;  /* enum ky_ctx */
	/*
	 * as in a field's description, include/kymo/types.h; the argument of a call stack is its
	 * count
	 */
	uint8_t field, elem, size, flags;
	uint32_t count;
	char help[80]; /* one line; begins with the argument's form if there is one */
};

/* In the order of their numbers; ends with a row without name. */
extern const struct ky_ctx_type ky_ctx_types[];

/* A context of a channel. */
struct ky_context {
	const struct ky_ctx_type *type;
	char spec[KY_CTX_SPEC_MAX];	/* as the user wrote it */
	char name[KY_CTX_SPEC_MAX];	/* as readers show it: letters, digits and '_' */
	char argument[KY_CTX_SPEC_MAX]; /* in messages; "" when the kind has none */
};

/* Returns the row of the kind, or NULL if there is none. */
const struct ky_ctx_type *ky_ctx_type(uint32_t kind);
/*
 * Returns the maximum bytes of such a context in a record; 0: the kind or its argument is unknown.
 */
uint32_t ky_ctx_record_size(uint32_t kind, const char *argument);

/* Parses "TYPE:CONFIG". */
bool ky_ctx_perf_argument(const char *argument, uint32_t *ret_type, uint64_t *ret_config);
/* Returns the depth, 1 .. KY_CTX_DEPTH_MAX, or 0 if the argument is none. */
uint32_t ky_ctx_depth(const char *argument);

/* A counter that "perf:thread:" knows by name; the table ends with a row without one. */
struct ky_ctx_counter {
	char name[24];
	uint32_t type;
	uint64_t config;
};
extern const struct ky_ctx_counter ky_ctx_counters[];

#endif
