/* SPDX-License-Identifier: MIT */
/*
 * Part of all preload libraries: prctl() and syscall(). By these, programs install filters of
 * system calls. A filter that ends the thread would end it at the next event whose contexts have to
 * be read, so threads keep their contexts from then on. Here are no events; those of a wait for a
 * futex, which is a system call, are in pthread.c.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/system-call.h"
#include "preload/preload.h"

static struct {
	int (*prctl)(int option, ...);
	/* <unistd.h> declares it with variable arguments: those could not be passed on. */
	preload_syscall_fn *syscall;
} real;

static const struct preload_symbol symbols[] = {
	PRELOAD_SYMBOL(prctl),
	PRELOAD_SYMBOL(syscall),
};

static struct preload_functions functions = PRELOAD_FUNCTIONS(symbols);
static PRELOAD_TLS bool searching;

static bool has_call_functions(void)
{
	return preload_have(&functions, &searching);
}

/* The child of a vfork() has its parent's contexts, and records nothing. */
static int before_filter(void)
{
	return kymo_vforked ? 0 : kymo_contexts_keep(1);
}

static void after_filter(long result, int kept)
{
	int saved = errno;

	if (result < 0 && !kymo_vforked)
		kymo_contexts_keep(kept);
	errno = saved;
}

/* Passes four words to the kernel, whatever number the caller passed. */
PRELOAD_EXPORT int prctl(int option, ...)
{
	unsigned long word[4];
	int result, kept;
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		word[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (!has_call_functions()) {
		errno = ENOSYS;
		return -1;
	}
	if (option == PR_SET_SECCOMP) {
		kept = before_filter();
		result = real.prctl(option, word[0], word[1], word[2], word[3]);
		after_filter(result, kept);
		return result;
	}
	result = real.prctl(option, word[0], word[1], word[2], word[3]);
	return option == PR_SET_NAME ? preload_changed(result) : result;
}

#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
static bool waits_for_futex(long number, long operation)
{
	long command = operation & FUTEX_CMD_MASK;

	return number == SYS_futex &&
	       (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
		       command == FUTEX_WAIT_REQUEUE_PI);
}

static bool installs_filter(long number, long operation)
{
	return number == SYS_seccomp ? operation == SECCOMP_SET_MODE_STRICT ||
					       operation == SECCOMP_SET_MODE_FILTER
				     : number == SYS_prctl && operation == PR_SET_SECCOMP;
}

/*
 * Returns the function to which the call is passed on; NULL: preload_syscall_here() makes it. Calls
 * that are passed on are jumps: for vfork(), and because the next library needs the caller.
 */
preload_syscall_fn *preload_syscall_next(long number, long a, long b)
{
	if (!has_call_functions() || (preload_futex_wait && waits_for_futex(number, b)) ||
		installs_filter(number, a))
		return NULL;
	return real.syscall;
}

long preload_syscall_here(
	long number, long a, long b, long c, long d, long e, long f, const void *caller)
{
	long result;
	int kept;

	if (!has_call_functions()) /* an allocator calls the kernel while dlsym() allocates */
		return ky_system_call(number, a, b, c, d, e, f);
	if (!installs_filter(number, a))
		return preload_futex_wait(real.syscall, caller, a, b, c, d, e, f);
	kept = before_filter();
	result = real.syscall(number, a, b, c, d, e, f);
	after_filter(result, kept);
	return result;
}

#if defined(__aarch64__) /* all arguments are in registers; else syscall-x86_64.S */
preload_syscall_fn preload_syscall __asm__("syscall");

/* Takes as many arguments as there can be. */
PRELOAD_EXPORT long preload_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	preload_syscall_fn *next = preload_syscall_next(number, a, b);

	if (preload_likely(next))
		return next(number, a, b, c, d, e, f);
	return preload_syscall_here(number, a, b, c, d, e, f, __builtin_return_address(0));
}
#endif
#endif
