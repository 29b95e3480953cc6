/* SPDX-License-Identifier: MIT */
#include "kernel/contexts.h"

#define INT	  KYMO_FIELD_INT
#define ADDRESSES KYMO_FIELD_ARRAY, KYMO_FIELD_UINT, 8, KYMO_FIELD_HEX, KY_KSTACK_FRAMES

const struct ky_ctx_type ky_kcontext_types[] = {
	{"tid", KY_KCTX_TID, INT, 0, 4, 0, 0, "thread that recorded the event"},
	{"pid", KY_KCTX_PID, INT, 0, 4, 0, 0, "its process"},
	{"procname", KY_KCTX_PROCNAME, KYMO_FIELD_TEXT, 0, 1, 0, KY_CTX_PROCNAME_SIZE,
		"name of the thread"},
	{"interruptible", KY_KCTX_INTERRUPTIBLE, INT, 0, 1, 0, 0, "1: interrupts were enabled"},
	{"preemptible", KY_KCTX_PREEMPTIBLE, INT, 0, 1, 0, 0, "1: preemption was enabled"},
	{"need_reschedule", KY_KCTX_NEED_RESCHEDULE, INT, 0, 1, 0, 0,
		"1: another thread was to run next"},
	{"callstack-kernel", KY_KCTX_CALLSTACK_KERNEL, ADDRESSES, "return addresses in the kernel"},
	{"callstack-user", KY_KCTX_CALLSTACK_USER, ADDRESSES,
		"return addresses in the program, by frame pointers"},
	{.name = ""},
};

const struct ky_ctx_type *ky_kcontext_find(const char *spec)
{
	for (const struct ky_ctx_type *t = ky_kcontext_types; t->name[0]; t++)
		if (!strcmp(t->name, spec))
			return t;
	return NULL;
}
