/* SPDX-License-Identifier: MIT */
/*
 * libkymo-pthread.so: calls of functions that lock and wait as events, with the address of the
 * caller. The tracer's own calls are excluded: they belong to the recording, not to the program.
 *
 * Mutexes have an event before and one after the call, others a span (kymo/span.h). A mutex or
 * condition of C11 is one of POSIX. The C library's own calls are inside it, so each form of a
 * function needs a wrapper. Functions that the C library may lack have one if it had them when this
 * library was built; an older one at run time may still lack them.
 *
 * Code that waits by itself, such as std::atomic::wait, calls the kernel by syscall()
 * (system-calls.c).
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>

#include "preload/preload.h"

typedef const struct timespec *deadline;

/* Each function, and its parameters. */
#define FUNCTIONS(F)                                                                               \
	F(pthread_mutex_lock, pthread_mutex_t *)                                                   \
	F(pthread_mutex_trylock, pthread_mutex_t *)                                                \
	F(pthread_mutex_timedlock, pthread_mutex_t *, deadline)                                    \
	F(pthread_mutex_unlock, pthread_mutex_t *)                                                 \
	F(pthread_rwlock_rdlock, pthread_rwlock_t *)                                               \
	F(pthread_rwlock_tryrdlock, pthread_rwlock_t *)                                            \
	F(pthread_rwlock_timedrdlock, pthread_rwlock_t *, deadline)                                \
	F(pthread_rwlock_wrlock, pthread_rwlock_t *)                                               \
	F(pthread_rwlock_trywrlock, pthread_rwlock_t *)                                            \
	F(pthread_rwlock_timedwrlock, pthread_rwlock_t *, deadline)                                \
	F(pthread_rwlock_unlock, pthread_rwlock_t *)                                               \
	F(pthread_barrier_wait, pthread_barrier_t *)                                               \
	F(sem_wait, sem_t *)                                                                       \
	F(sem_trywait, sem_t *)                                                                    \
	F(sem_timedwait, sem_t *, deadline)                                                        \
	F(sem_post, sem_t *)                                                                       \
	F(mtx_lock, mtx_t *)                                                                       \
	F(mtx_trylock, mtx_t *)                                                                    \
	F(mtx_timedlock, mtx_t *, deadline)                                                        \
	F(mtx_unlock, mtx_t *)                                                                     \
	F(cnd_wait, cnd_t *, mtx_t *)                                                              \
	F(cnd_timedwait, cnd_t *, mtx_t *, deadline)                                               \
	F(cnd_signal, cnd_t *)                                                                     \
	F(cnd_broadcast, cnd_t *)

/*
 * x86: the functions of conditions have an older version, for another layout of them, which only
 * programs of before 2003 use.
 */
#if defined(__x86_64__)
#define CONDITION_VERSION "GLIBC_2.3.2"
#else
#define CONDITION_VERSION NULL
#endif
#define CONDITION_FUNCTIONS(F)                                                                     \
	F(pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *)                                  \
	F(pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, deadline)                   \
	F(pthread_cond_signal, pthread_cond_t *)                                                   \
	F(pthread_cond_broadcast, pthread_cond_t *)

#if HAVE_CLOCKLOCK
#define OPTIONAL_FUNCTIONS(F)                                                                      \
	F(pthread_mutex_clocklock, pthread_mutex_t *, clockid_t, deadline)                         \
	F(pthread_rwlock_clockrdlock, pthread_rwlock_t *, clockid_t, deadline)                     \
	F(pthread_rwlock_clockwrlock, pthread_rwlock_t *, clockid_t, deadline)                     \
	F(pthread_cond_clockwait, pthread_cond_t *, pthread_mutex_t *, clockid_t, deadline)        \
	F(sem_clockwait, sem_t *, clockid_t, deadline)
#else
#define OPTIONAL_FUNCTIONS(F)
#endif

static struct {
#define POINTER(function, ...) int (*function)(__VA_ARGS__);
	FUNCTIONS(POINTER)
	CONDITION_FUNCTIONS(POINTER)
	OPTIONAL_FUNCTIONS(POINTER)
#undef POINTER
} real;

/* clang-format off */
#define SYMBOL(function, ...)    PRELOAD_SYMBOL(function),
#define CONDITION(function, ...) PRELOAD_SYMBOL(function, .version = CONDITION_VERSION),
#define OPTIONAL(function, ...)  PRELOAD_SYMBOL(function, .is_optional = true),
static const struct preload_symbol symbols[] = {
	FUNCTIONS(SYMBOL) CONDITION_FUNCTIONS(CONDITION) OPTIONAL_FUNCTIONS(OPTIONAL)
};
/* clang-format on */

/*
 * The tracer's addresses. They are found in time: the tracer locks a mutex before it enables the
 * first event.
 */
static uintptr_t tracer_begin, tracer_size;

static int is_tracer_object(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');
	uintptr_t end = 0;

	if (!name || strcmp(name, "/libkymo.so.0") != 0)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	tracer_size = end;
	tracer_begin = info->dlpi_addr;
	return 1;
}

static void find_tracer(void)
{
	dl_iterate_phdr(is_tracer_object, NULL);
}

static struct preload_functions functions = {
	.symbols = symbols, .n = sizeof(symbols) / sizeof(symbols[0]), .prepare = find_tracer};
static PRELOAD_TLS bool searching;

/*
 * Returns false while this thread searches for the real functions, which itself locks a mutex. That
 * happens while the process starts and has no other thread to exclude: the call then returns 0 and
 * does nothing.
 */
static inline bool has_lock_functions(void)
{
	return preload_have(&functions, &searching);
}

static inline bool by_tracer(const void *caller)
{
	return (uintptr_t)caller - tracer_begin < tracer_size;
}

/* Defines a wrapper; the missing function of an older C library reports that it is missing. */
#define WRAPPER(function, params, args, missing, before, after)                                    \
	PRELOAD_EXPORT int function params                                                         \
	{                                                                                          \
		void *caller = __builtin_return_address(0);                                        \
		int status;                                                                        \
                                                                                                   \
		if (!has_lock_functions())                                                         \
			return 0;                                                                  \
		if (!real.function)                                                                \
			return missing;                                                            \
		if (by_tracer(caller))                                                             \
			return real.function args;                                                 \
		before;                                                                            \
		status = real.function args;                                                       \
		after;                                                                             \
		return status;                                                                     \
	}

#define EVENT(name, object)                                                                        \
	preload_event(pthread, name, kymo_ptr(object, object), kymo_i32(status, status),           \
		kymo_ptr(caller, caller))

/* Mutexes: events of their own, which `kymo explain` pairs. */
#define LOCK(function, params, args, missing)                                                      \
	WRAPPER(function, params, args, missing,                                                   \
		preload_event(pthread, mutex_lock_req, kymo_ptr(mutex, mutex),                     \
			kymo_ptr(caller, caller)),                                                 \
		EVENT(mutex_lock_acq, mutex))

/*
 * The event has the status, so it is recorded after the call: the next owner may be recorded
 * before.
 */
#define CALL(function, params, args, missing, name, object)                                        \
	WRAPPER(function, params, args, missing, , EVENT(name, object))

/* A span: both its ends have the object. */
#define WAIT(function, params, args, missing, name, object)                                        \
	WRAPPER(function, params, args, missing,                                                   \
		preload_span_begin(                                                                \
			pthread, name, kymo_ptr(object, object), kymo_ptr(caller, caller)),        \
		preload_span_end(pthread, name, kymo_ptr(object, object),                          \
			kymo_i32(status, status), kymo_ptr(caller, caller)))

#define WAIT_COND(function, params, args, missing)                                                 \
	WRAPPER(function, params, args, missing,                                                   \
		preload_span_begin(pthread, cond_wait, kymo_ptr(cond, cond),                       \
			kymo_ptr(mutex, mutex), kymo_ptr(caller, caller)),                         \
		preload_span_end(pthread, cond_wait, kymo_ptr(cond, cond),                         \
			kymo_i32(status, status), kymo_ptr(caller, caller)))

/* clang-format off */
LOCK(pthread_mutex_lock, (pthread_mutex_t *mutex), (mutex), ENOSYS)
LOCK(pthread_mutex_timedlock, (pthread_mutex_t *mutex, deadline t), (mutex, t), ENOSYS)
CALL(pthread_mutex_trylock, (pthread_mutex_t *mutex), (mutex), ENOSYS, mutex_trylock, mutex)
CALL(pthread_mutex_unlock, (pthread_mutex_t *mutex), (mutex), ENOSYS, mutex_unlock, mutex)
LOCK(mtx_lock, (mtx_t *mutex), (mutex), thrd_error)
LOCK(mtx_timedlock, (mtx_t *mutex, deadline t), (mutex, t), thrd_error)
CALL(mtx_trylock, (mtx_t *mutex), (mutex), thrd_error, mutex_trylock, mutex)
CALL(mtx_unlock, (mtx_t *mutex), (mutex), thrd_error, mutex_unlock, mutex)

WAIT(pthread_rwlock_rdlock, (pthread_rwlock_t *rwlock), (rwlock), ENOSYS, rwlock_rdlock, rwlock)
WAIT(pthread_rwlock_timedrdlock, (pthread_rwlock_t *rwlock, deadline t), (rwlock, t), ENOSYS, rwlock_rdlock, rwlock)
WAIT(pthread_rwlock_wrlock, (pthread_rwlock_t *rwlock), (rwlock), ENOSYS, rwlock_wrlock, rwlock)
WAIT(pthread_rwlock_timedwrlock, (pthread_rwlock_t *rwlock, deadline t), (rwlock, t), ENOSYS, rwlock_wrlock, rwlock)
CALL(pthread_rwlock_tryrdlock, (pthread_rwlock_t *rwlock), (rwlock), ENOSYS, rwlock_tryrdlock, rwlock)
CALL(pthread_rwlock_trywrlock, (pthread_rwlock_t *rwlock), (rwlock), ENOSYS, rwlock_trywrlock, rwlock)
CALL(pthread_rwlock_unlock, (pthread_rwlock_t *rwlock), (rwlock), ENOSYS, rwlock_unlock, rwlock)

WAIT_COND(pthread_cond_wait, (pthread_cond_t *cond, pthread_mutex_t *mutex), (cond, mutex), ENOSYS)
WAIT_COND(pthread_cond_timedwait, (pthread_cond_t *cond, pthread_mutex_t *mutex, deadline t), (cond, mutex, t), ENOSYS)
CALL(pthread_cond_signal, (pthread_cond_t *cond), (cond), ENOSYS, cond_signal, cond)
CALL(pthread_cond_broadcast, (pthread_cond_t *cond), (cond), ENOSYS, cond_broadcast, cond)
WAIT_COND(cnd_wait, (cnd_t *cond, mtx_t *mutex), (cond, mutex), thrd_error)
WAIT_COND(cnd_timedwait, (cnd_t *cond, mtx_t *mutex, deadline t), (cond, mutex, t), thrd_error)
CALL(cnd_signal, (cnd_t *cond), (cond), thrd_error, cond_signal, cond)
CALL(cnd_broadcast, (cnd_t *cond), (cond), thrd_error, cond_broadcast, cond)

WAIT(pthread_barrier_wait, (pthread_barrier_t *barrier), (barrier), ENOSYS, barrier_wait, barrier)

WAIT(sem_wait, (sem_t *sem), (sem), -1, sem_wait, sem)
WAIT(sem_timedwait, (sem_t *sem, deadline t), (sem, t), -1, sem_wait, sem)
CALL(sem_trywait, (sem_t *sem), (sem), -1, sem_trywait, sem)
CALL(sem_post, (sem_t *sem), (sem), -1, sem_post, sem)

#if HAVE_CLOCKLOCK
LOCK(pthread_mutex_clocklock, (pthread_mutex_t *mutex, clockid_t c, deadline t), (mutex, c, t), ENOSYS)
WAIT(pthread_rwlock_clockrdlock, (pthread_rwlock_t *rwlock, clockid_t c, deadline t), (rwlock, c, t), ENOSYS, rwlock_rdlock, rwlock)
WAIT(pthread_rwlock_clockwrlock, (pthread_rwlock_t *rwlock, clockid_t c, deadline t), (rwlock, c, t), ENOSYS, rwlock_wrlock, rwlock)
WAIT_COND(pthread_cond_clockwait, (pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t c, deadline t), (cond, mutex, c, t), ENOSYS)
WAIT(sem_clockwait, (sem_t *sem, clockid_t c, deadline t), (sem, c, t), -1, sem_wait, sem)
#endif
/* clang-format on */

/* --- futexes --- */

#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
long preload_futex_wait(preload_syscall_fn *real_syscall, const void *caller, long futex,
	long operation, long c, long d, long e, long f)
{
	const void *address = (const void *)futex;
	long result;

	if (!has_lock_functions() || by_tracer(caller))
		return real_syscall(SYS_futex, futex, operation, c, d, e, f);
	preload_span_begin(pthread, futex_wait, kymo_ptr(futex, address), kymo_ptr(caller, caller));
	result = real_syscall(SYS_futex, futex, operation, c, d, e, f);
	preload_span_end(pthread, futex_wait, kymo_ptr(futex, address),
		kymo_i32(status, result < 0 ? errno : 0), kymo_ptr(caller, caller));
	return result;
}
#endif
