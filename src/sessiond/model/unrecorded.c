/* SPDX-License-Identifier: MIT */
#include "sessiond/model/unrecorded.h"

#define NAMED_MAX 5u

void unrecorded_put(struct ky_buf *to, const char *name, pid_t pid, uint64_t ns)
{
	ky_buf_printf(to, "%s (pid %d, ", name, (int)pid);
	if (ns == UNRECORDED_TO_ITS_END)
		ky_buf_puts(to, "until it ended)");
	else
		ky_buf_printf(to, "%.1f ms)", (double)ns / 1e6);
}

void unrecorded_add(struct unrecorded *u, const char *name, pid_t pid, uint64_t ns)
{
	if (u->n++ >= NAMED_MAX)
		return;
	if (u->n > 1)
		ky_buf_puts(&u->names, ", ");
	unrecorded_put(&u->names, name, pid, ns);
}

void unrecorded_describe(struct ky_buf *to, const struct unrecorded *u)
{
	if (!u->n)
		return;
	ky_buf_printf(to,
		"%u application%s ran unrecorded for a time, because the session daemon did not answer in time: %s",
		u->n, u->n == 1 ? "" : "s", u->names.data ? u->names.data : "");
	if (u->n > NAMED_MAX)
		ky_buf_printf(to, " and %u more", u->n - NAMED_MAX);
	ky_buf_puts(to, "; the events of that time are neither in the trace nor counted");
}

void unrecorded_deinit(struct unrecorded *u)
{
	ky_buf_deinit(&u->names);
}
