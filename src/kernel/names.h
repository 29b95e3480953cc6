/* SPDX-License-Identifier: MIT */
/*
 * Names and values of kernel events in the trace. Tools that read kernel traces (Trace Compass,
 * lttng-analyses) expect those of LTTng's tracepoints at the same places. Events and fields that
 * the tables do not list keep the kernel's names.
 */
#ifndef KERNEL_NAMES_H
#define KERNEL_NAMES_H

#include "base/util.h"

/*
 * Writes the trace's name of an event to buf: "sched_switch", "syscall_entry_openat". Returns buf.
 */
char *ky_kname(const char *system, const char *event, char *buf, size_t size);
/*
 * Returns the identifier, below 21, that the event always has in the trace, so that its records
 * have short heads; UINT32_MAX: it has none.
 */
uint32_t ky_kernel_fixed_id(const char *trace_name);

/* The replacement of a field in the trace. */
struct ky_krename {
	const char *event, *field; /* the kernel's; "PREFIX*" matches more events */
	const char *name;	   /* NULL: the field is left out */
	int32_t add;		   /* to its value */
};
/* Returns the row for this field of a kernel's event, or NULL if it stays as it is. */
const struct ky_krename *ky_krename_find(const char *event, const char *field);

#endif
