/* SPDX-License-Identifier: MIT */
/*
 * System calls without the C library's functions. A program may define a function `connect` or
 * `poll`, and a preloaded library may replace them. They may do something else, lock a mutex, or
 * record an event. Code that records events would then wait for a lock that its caller holds, or
 * call itself without end.
 */
#ifndef BASE_SYSTEM_CALL_H
#define BASE_SYSTEM_CALL_H

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As syscall(), with as many arguments as there can be. */
static inline long ky_system_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__LP64__) && defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#elif defined(__LP64__) && defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long result __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(result)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
#else
	return syscall(number, a, b, c, d, e, f);
#endif
#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
	if (result > -4096 && result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
#endif
}

/*
 * ky_raw_call(number, arguments...): as syscall(); arguments are integers or pointers. ky_call is
 * the same in libkymo (KY_DIRECT_CALLS); elsewhere it calls the C library, where tests make calls
 * fail.
 */
#define KY_CALL_ARG(x) ((long)(uintptr_t)(x))
#define KY_CALL_6(number, a, b, c, d, e, f, ...)                                                   \
	ky_system_call(number, KY_CALL_ARG(a), KY_CALL_ARG(b), KY_CALL_ARG(c), KY_CALL_ARG(d),     \
		KY_CALL_ARG(e), KY_CALL_ARG(f))
#define ky_raw_call(...) KY_CALL_6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#ifdef KY_DIRECT_CALLS
#define ky_call ky_raw_call
#else
#define ky_call syscall
#endif

static inline pid_t ky_process_number(void)
{
	return (pid_t)ky_raw_call(SYS_getpid);
}

static inline pid_t ky_thread_number(void)
{
	return (pid_t)ky_raw_call(SYS_gettid);
}

/* As the kernel has it: under fakeroot, the program sees another one. */
static inline uid_t ky_effective_user(void)
{
#ifdef SYS_geteuid32 /* the other one has 16 bits */
	return (uid_t)ky_raw_call(SYS_geteuid32);
#else
	return (uid_t)ky_raw_call(SYS_geteuid);
#endif
}

/* name: 16 bytes. */
static inline void ky_thread_name(char *name)
{
	ky_raw_call(SYS_prctl, PR_GET_NAME, name);
}

#endif
