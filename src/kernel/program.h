/* SPDX-License-Identifier: MIT */
/*
 * The way of a kind of kernel event: its fields in the trace, as an application would describe
 * them, and the steps that make such a record from the kernel's. The session daemon makes programs
 * from formats, describes them in the metadata, and sends the steps to the consumer.
 */
#ifndef KERNEL_PROGRAM_H
#define KERNEL_PROGRAM_H

#include "base/buf.h"
#include "kernel/contexts.h"
#include "kernel/format.h"

/* In messages: numbers are never reused. Numbers are as the machine has them, unaligned. */
enum ky_kop {
	KY_KOP_COPY = 1,	  /* len bytes from offset */
	KY_KOP_ADD = 2,		  /* adds len to the i32 that was written `offset` bytes before */
	KY_KOP_STRING = 3,	  /* the u32 at offset is a place: up to its first NUL, and a NUL */
	KY_KOP_SEQUENCE = 4,	  /* likewise: u32 count of elements of len bytes, elements */
	KY_KOP_TGID = 5,	  /* i32: process of the thread whose number is the i32 at offset */
	KY_KOP_PROCNAME = 6,	  /* char[16]: name of that thread */
	KY_KOP_RWBS = 7,	  /* char[len] of block events, as LTTng's bits: u32 */
	KY_KOP_EMPTY = 8,	  /* an empty string: text that this kernel does not record */
	KY_KOP_ZERO_BITS = 9,	  /* u8: 1 if the byte at offset has none of the bits len, else 0 */
	KY_KOP_SOME_BITS = 10,	  /* u8: 1 if it has any of them */
	KY_KOP_BASENAME = 11,	  /* char[16]: base name of the text at the place, 15 bytes of it */
	KY_KOP_KERNEL_STACK = 12, /* KY_KSTACK_FRAMES addresses: of the stack behind the event */
	KY_KOP_USER_STACK = 13,
	KY_KOP_FIELDS = 14, /* nothing: contexts end here */
};

struct ky_kstep {
	uint8_t op;
	uint8_t relative; /* of a place: the offset counts from behind the u32 */
	uint16_t offset;  /* in the kernel's data */
	int32_t len;
};

#define KY_KCONTEXTS_MAX 8u
#define KY_KSTEPS_MAX	 (3 * KY_KFIELDS_MAX + KY_KCONTEXTS_MAX)
#define KY_KPROGRAM_NAME 256
/* A text argument has two fields; some events have two more than the kernel's. */
#define KY_KOUT_MAX (2 * KY_KFIELDS_MAX + 2)

/* The origin of a field of the trace. */
struct ky_korigin {
	const struct ky_kfield *field; /* NULL: from no single field of the format */
	int32_t added;		       /* to its value */
};

struct ky_kprogram {
	char name[KY_KPROGRAM_NAME]; /* of the event in the trace; the caller may change it */
	/* in the trace; ends with KYMO_FIELD_END. Names are in `names`, in the format, or static */
	uint32_t n_fields;
	struct kymo_field fields[KY_KOUT_MAX + 1];
	struct ky_korigin from[KY_KOUT_MAX];
	char names[8][KY_KNAME_MAX + 4]; /* of arguments' addresses */
	uint32_t min;			 /* bytes of data that the steps read for certain */
	uint32_t n_steps;
	struct ky_kstep steps[KY_KSTEPS_MAX];
};

/*
 * Makes the program of a kernel's event that has these contexts in the trace. It borrows names from
 * the format. Returns 0, or -E2BIG if there are too many contexts.
 */
int ky_kprogram_make(struct ky_kprogram *p, const char *system, const struct ky_kformat *f,
	const struct ky_context *contexts, uint32_t n_contexts);
/* Writes the description (proto/desc.h) of an event without a provider. */
void ky_kernel_describe(struct ky_writer *w, const char *name, const struct kymo_field *fields);
/* Appends the metadata of an event. Errors are b's. */
void ky_kernel_tsdl_event(struct ky_buf *b, const char *name, const struct kymo_field *fields,
	uint32_t stream_id, uint32_t id, const struct ky_context *contexts, uint32_t n_contexts);

/*
 * The identifier, in messages, of a kind that is not recorded itself: the stacks that the kernel
 * records behind events. Their only step has the op of the context and the offset of the addresses.
 */
#define KY_KERNEL_STACK_ID UINT32_MAX
/*
 * Makes the step for ftrace:kernel_stack or ftrace:user_stack. Returns 0 or -EBADMSG.
 */
int ky_kstack_make(struct ky_kstep *ret, const struct ky_kformat *f);

/* The places of fields in the events that follow threads; in messages. */
struct ky_ktasks {
	uint16_t newtask, newtask_pid, newtask_comm, newtask_flags; /* kernel's id, offsets */
	uint16_t rename, rename_pid, rename_comm;
	uint16_t reserved;
};
/* Reads the formats of task_newtask and task_rename. Returns 0 or -EBADMSG. */
int ky_ktasks_make(struct ky_ktasks *t, const char *newtask, const char *rename);

#endif
