/* SPDX-License-Identifier: MIT */
/*
 * The archive that builds find when they search for LTTng-UST's library. Programs that are compiled
 * with Kymo's headers use nothing from it. Configure scripts link with one of these names to check
 * that the library exists.
 */
#define NOTHING(name)                                                                              \
	void name(void);                                                                           \
	void name(void)                                                                            \
	{                                                                                          \
	}

NOTHING(lttng_ust_init_thread)
NOTHING(lttng_ust_probe_register)
NOTHING(lttng_ust_probe_unregister)
NOTHING(lttng_ust_before_fork)
NOTHING(lttng_ust_after_fork_parent)
NOTHING(lttng_ust_after_fork_child)
NOTHING(lttng_ust_context_provider_register)
NOTHING(lttng_ust_tracepoint_module_register)
NOTHING(lttng_ust_tracepoint_module_unregister)
