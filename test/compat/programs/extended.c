/* SPDX-License-Identifier: MIT */
#include "extended-tp.h"
#include <lttng/ust-clock.h>
#include <lttng/ust-getcpu.h>
#include <lttng/ust.h>

int main(void)
{
	static const uint8_t bytes[] = {1, 2, 0xfe, 4, 5};
	char set[256];

	tracepoint(extended, blobs, bytes, sizeof(bytes));
	tracepoint(extended, twelve, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
	tracepoint(extended, thirty_two, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
		17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
	if (lttng_ust_tracepoint_extended___twelve.state)
		lttng_ust_tracepoint_cb_extended___twelve(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 21);
	if (__tracepoint_extended___twelve.state)
		do_tracepoint(extended, twelve, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31);
	ust_before_fork(&set);
	ust_after_fork_parent(&set);
	lttng_ust_after_setns();
	lttng_ust_init_thread();
	lttng_ust_tracepoint_disable_destructors();
	return lttng_ust_enable_trace_clock_override() == 0 || lttng_ust_getcpu_override(NULL) == 0;
}
