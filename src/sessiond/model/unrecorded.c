/* SPDX-License-Identifier: MIT */
#include "sessiond/model/unrecorded.h"

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
	for (unsigned i = 0; i < KY_MIN(u->n, UNRECORDED_NAMED); i++) {
		if (u->named[i].pid != pid)
			continue;
		if (__builtin_add_overflow(u->named[i].ns, ns, &u->named[i].ns))
			u->named[i].ns = UNRECORDED_TO_ITS_END;
		return;
	}
	if (u->n && u->last == pid)
		return;
	u->last = pid;
	if (u->n < UNRECORDED_NAMED) {
		u->named[u->n].pid = pid;
		u->named[u->n].ns = ns;
		u->named[u->n].name = strdup(name);
	}
	u->n++;
}

void unrecorded_describe(struct ky_buf *to, const struct unrecorded *u)
{
	if (!u->n)
		return;
	ky_buf_printf(
		to, "%u application%s ran unrecorded for a time: ", u->n, u->n == 1 ? "" : "s");
	for (unsigned i = 0; i < KY_MIN(u->n, UNRECORDED_NAMED); i++) {
		ky_buf_puts(to, i ? ", " : "");
		unrecorded_put(to, u->named[i].name ? u->named[i].name : "?", u->named[i].pid,
			u->named[i].ns);
	}
	if (u->n > UNRECORDED_NAMED)
		ky_buf_printf(to, " and %u more", u->n - UNRECORDED_NAMED);
	ky_buf_puts(to,
		"; the session daemon did not answer in time, or the application became another user or could not map the buffers; the events of that time are neither in the trace nor counted");
}

void unrecorded_deinit(struct unrecorded *u)
{
	for (unsigned i = 0; i < UNRECORDED_NAMED; i++)
		free(u->named[i].name);
	*u = (struct unrecorded){0};
}
