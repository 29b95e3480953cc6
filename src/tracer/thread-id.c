/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's number, for events that name their thread (<kymo/span.h>). The kernel is
 * asked once for each thread: that is the only system call that recording a span ever makes.
 */
#include "base/system-call.h"
#include "tracer/tracer.h"

static __thread uint32_t thread_id KY_THREAD_TLS; /* 0: not known */

__attribute__((visibility("default"))) uint32_t kymo_thread_id(void)
{
	if (ky_unlikely(!thread_id)) {
		int saved = errno;

		thread_id = (uint32_t)ky_thread_number();
		errno = saved;
	}
	return thread_id;
}

void tracer_thread_id_reset(void)
{
	thread_id = 0;
}
