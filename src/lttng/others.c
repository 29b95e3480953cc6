/* SPDX-License-Identifier: MIT */
/*
 * Functions and variables of LTTng-UST's libraries that programs name, and that have nothing to do
 * here: libkymo notices forks, new names of threads and the like by itself, and needs no read locks
 * around probes.
 */
#include <errno.h>
#include <stdio.h>

#include <kymo/context.h>

#include "lttng/lttng.h"

#define NOTHING(name)                                                                              \
	void name(void);                                                                           \
	EXPORT void name(void)                                                                     \
	{                                                                                          \
	}

NOTHING(lttng_ust_init_thread)
NOTHING(lttng_ust_before_fork)
NOTHING(lttng_ust_after_fork_parent)
NOTHING(lttng_ust_after_fork_child)
NOTHING(lttng_ust_dl_update)
NOTHING(lttng_ust_context_provider_unregister)
NOTHING(lttng_ust_tp_rcu_read_lock)
NOTHING(lttng_ust_tp_rcu_read_unlock)
NOTHING(lttng_ust_urcu_read_lock)
NOTHING(lttng_ust_urcu_read_unlock)
NOTHING(lttng_ust_urcu_register_thread)
NOTHING(lttng_ust_urcu_synchronize_rcu)
NOTHING(lttng_ust_urcu_before_fork)
NOTHING(lttng_ust_urcu_after_fork_parent)
NOTHING(lttng_ust_urcu_after_fork_child)

/* The process's identity, or a name, is another one now. */
#define CHANGED(name)                                                                              \
	void name(void);                                                                           \
	EXPORT void name(void)                                                                     \
	{                                                                                          \
		kymo_contexts_changed();                                                           \
	}

CHANGED(lttng_ust_after_setns)
CHANGED(lttng_ust_after_unshare)
CHANGED(lttng_ust_after_setuid)
CHANGED(lttng_ust_after_setgid)
CHANGED(lttng_ust_after_seteuid)
CHANGED(lttng_ust_after_setegid)
CHANGED(lttng_ust_after_setreuid)
CHANGED(lttng_ust_after_setregid)
CHANGED(lttng_ust_after_setresuid)
CHANGED(lttng_ust_after_setresgid)
CHANGED(lttng_ust_context_procname_reset)

/* Programs have a weak one, too, which is 0 without the library (lttng-ust(3)). */
extern int lttng_ust_loaded;
EXPORT __attribute__((weak)) int lttng_ust_loaded;

__attribute__((constructor)) static void say_loaded(void)
{
	lttng_ust_loaded = 1;
}

void *lttng_ust_tp_rcu_dereference_sym(void *p);
EXPORT void *lttng_ust_tp_rcu_dereference_sym(void *p)
{
	return p;
}

/* Contexts of the program's own are not taken: NULL says so. */
void *lttng_ust_context_provider_register(const void *provider);
EXPORT void *lttng_ust_context_provider_register(const void *provider)
{
	(void)provider;
	lttng_leave_out("", "*", "contexts of the program's own ($app) are not recorded");
	return NULL;
}

const char *lttng_ust_strerror(int code);
EXPORT const char *lttng_ust_strerror(int code)
{
	(void)code;
	return "Unknown error";
}

/* Clocks and numbers of the CPU of the program's own are not taken. */
#define REPORTED(name, what)                                                                       \
	int name(void);                                                                            \
	EXPORT int name(void)                                                                      \
	{                                                                                          \
		lttng_leave_out("", "*", "events have Kymo's %s, not the program's own", what);    \
		return -ENOSYS;                                                                    \
	}

REPORTED(lttng_ust_enable_trace_clock_override, "clock")
REPORTED(lttng_ust_getcpu_override, "number of the CPU")

#define REFUSED(name)                                                                              \
	int name(void);                                                                            \
	EXPORT int name(void)                                                                      \
	{                                                                                          \
		return -ENOSYS;                                                                    \
	}

REFUSED(lttng_ust_trace_clock_set_read64_cb)
REFUSED(lttng_ust_trace_clock_get_read64_cb)
REFUSED(lttng_ust_trace_clock_set_freq_cb)
REFUSED(lttng_ust_trace_clock_get_freq_cb)
REFUSED(lttng_ust_trace_clock_set_uuid_cb)
REFUSED(lttng_ust_trace_clock_get_uuid_cb)
REFUSED(lttng_ust_trace_clock_set_name_cb)
REFUSED(lttng_ust_trace_clock_get_name_cb)
REFUSED(lttng_ust_trace_clock_set_description_cb)
REFUSED(lttng_ust_trace_clock_get_description_cb)

/* The read lock looks at these in objects that were compiled with _LGPL_SOURCE. */
struct urcu_global {
	unsigned long count;
	int32_t futex;
} __attribute__((aligned(128)));

extern struct urcu_global lttng_ust_urcu_gp;
extern int lttng_ust_urcu_has_sys_membarrier;

EXPORT struct urcu_global lttng_ust_urcu_gp = {1, 0};
EXPORT int lttng_ust_urcu_has_sys_membarrier = 1;
EXPORT __thread struct urcu_reader *lttng_ust_urcu_reader;

int lttng_ust_urcu_read_ongoing(void);
EXPORT int lttng_ust_urcu_read_ongoing(void)
{
	return 0;
}

/*
 * LTTng's own libraries need these of its liblttng-ust-common: those that programs preload, and the
 * one of its daemons.
 */
NOTHING(lttng_ust_common_ctor)
NOTHING(lttng_ust_common_alloc_tls)

/* NULL: the clock and the number of the CPU are not the program's own. */
extern void *lttng_ust_trace_clock, *lttng_ust_get_cpu_sym;
EXPORT void *lttng_ust_trace_clock, *lttng_ust_get_cpu_sym;

/* The tracer's descriptors, which a program must not close: libkymo's are in another table. */
NOTHING(lttng_ust_lock_fd_tracker)
NOTHING(lttng_ust_unlock_fd_tracker)
NOTHING(lttng_ust_delete_fd_from_tracker)

int lttng_ust_add_fd_to_tracker(int fd);
EXPORT int lttng_ust_add_fd_to_tracker(int fd)
{
	return fd;
}

int lttng_ust_safe_close_fd(int fd, int (*real)(int fd));
EXPORT int lttng_ust_safe_close_fd(int fd, int (*real)(int fd))
{
	return real(fd);
}

int lttng_ust_safe_fclose_stream(FILE *stream, int (*real)(FILE *stream));
EXPORT int lttng_ust_safe_fclose_stream(FILE *stream, int (*real)(FILE *stream))
{
	return real(stream);
}

int lttng_ust_safe_close_range_fd(unsigned first, unsigned last, int flags,
	int (*real)(unsigned first, unsigned last, int flags));
EXPORT int lttng_ust_safe_close_range_fd(unsigned first, unsigned last, int flags,
	int (*real)(unsigned first, unsigned last, int flags))
{
	return real(first, last, flags);
}

/* Threads are not cancelled in the functions of this library, which do not wait. */
#define SUCCESS(name)                                                                              \
	int name(void);                                                                            \
	EXPORT int name(void)                                                                      \
	{                                                                                          \
		return 0;                                                                          \
	}

SUCCESS(lttng_ust_cancelstate_disable_push)
SUCCESS(lttng_ust_cancelstate_disable_pop)

/* Pointers that threads read under the read lock. */
void *lttng_ust_rcu_dereference_sym(void *p);
EXPORT void *lttng_ust_rcu_dereference_sym(void *p)
{
	return p;
}

void *lttng_ust_rcu_set_pointer_sym(void **p, void *value);
EXPORT void *lttng_ust_rcu_set_pointer_sym(void **p, void *value)
{
	__atomic_store_n(p, value, __ATOMIC_SEQ_CST); /* pairs with reads by the pointer's value */
	return value;
}

void *lttng_ust_rcu_xchg_pointer_sym(void **p, void *value);
EXPORT void *lttng_ust_rcu_xchg_pointer_sym(void **p, void *value)
{
	return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST); /* as above */
}

void *lttng_ust_rcu_cmpxchg_pointer_sym(void **p, void *old, void *value);
EXPORT void *lttng_ust_rcu_cmpxchg_pointer_sym(void **p, void *old, void *value)
{
	/* as above */
	__atomic_compare_exchange_n(p, &old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}
