/* SPDX-License-Identifier: MIT */
/*
 * libkymo-crash.so: the signals of a program's mistakes as events, with the stack of the thread,
 * before they take their course: the program's own handler, or its end.
 *
 * The library handles these signals itself, and remembers what the program asks for: sigaction()
 * and signal() have wrappers. A program sees the actions that it has set, and its handlers run with
 * the masks and flags that it has chosen.
 *
 * Functions of the C library find the stack by the tables of unwinders, so programs need no frame
 * pointers. They may fail in a program whose memory is damaged; the library survives that by
 * jumping out of a second fault.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

#include "preload/preload.h"

#define FRAMES_MAX 64
#define STACK_SIZE 65536u

static const int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
#define N_CAUGHT (sizeof(caught) / sizeof(caught[0]))

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	void (*(*signal)(int, void (*)(int)))(int);
} real;

static const struct preload_symbol symbols[] = {
	{"sigaction", (void **)&real.sigaction},
	{"signal", (void **)&real.signal},
};

/*
 * The action that the program has chosen. A handler may interrupt a change: it reads the copy that
 * `valid` names, and only the other one changes.
 */
static struct {
	struct sigaction copies[2];
	unsigned valid;
} chosen[N_CAUGHT];

static bool busy; /* an action changes; its signals are blocked in that thread */

static PRELOAD_TLS sigjmp_buf
	*volatile escape; /* of the thread that looks for its stack, or NULL */

static bool has_signal_functions(void)
{
	return preload_likely(__atomic_load_n((void **)&real.signal, __ATOMIC_RELAXED)) ||
	       preload_find(symbols, sizeof(symbols) / sizeof(symbols[0]));
}

/* Returns the place in `chosen`, or -1. */
static int place_of(int number)
{
	for (size_t i = 0; i < N_CAUGHT; i++) {
		if (caught[i] == number)
			return (int)i;
	}
	return -1;
}

/* --- the stack --- */

#if defined(__x86_64__)
#define CODE_OF(context)   ((void *)(context)->uc_mcontext.gregs[REG_RIP])
#define RETURN_OF(context) (*(void **)(context)->uc_mcontext.gregs[REG_RSP])
#elif defined(__aarch64__)
#define CODE_OF(context)   ((void *)(context)->uc_mcontext.pc)
#define RETURN_OF(context) ((void *)(context)->uc_mcontext.regs[30])
#else
#define CODE_OF(context)   NULL
#define RETURN_OF(context) NULL
#endif

/* Finds the callers of the code that was interrupted. It may fault. */
static size_t find_callers(
	void *frames[FRAMES_MAX], const siginfo_t *info, const ucontext_t *context)
{
	size_t n = 0;
#ifdef __GLIBC__
	void *all[FRAMES_MAX], *code = CODE_OF(context);
	int n_all = backtrace(all, FRAMES_MAX), i = 0;

	while (i < n_all && all[i] != code)
		i++;
	for (int k = i + 1; k < n_all; k++)
		frames[n++] = all[k];
	/* A call of an address without code: only the caller is known. */
	if (!n && info->si_code > 0 && info->si_addr == code)
		frames[n++] = RETURN_OF(context);
#endif
	return n;
}

static size_t try_callers(
	void *frames[FRAMES_MAX], const siginfo_t *info, const ucontext_t *context)
{
	sigjmp_buf back;
	volatile size_t n = 0;

	if (!sigsetjmp(back, 1)) {
		escape = &back;
		n = find_callers(frames, info, context);
	}
	escape = NULL;
	return n;
}

/* --- the signal --- */

/*
 * The end of the program. Code that faulted does so again when the handler returns. A signal that
 * was sent is sent again, and arrives then.
 */
static void end_program(int number, siginfo_t *info)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	long process = getpid(), thread = syscall(SYS_gettid);

	real.sigaction(number, &action, NULL);
	if (info->si_code > 0)
		return;
	if (syscall(SYS_rt_tgsigqueueinfo, process, thread, number, info) < 0)
		syscall(SYS_tgkill, process, thread, number);
}

static int change(int place, const struct sigaction *action, struct sigaction *ret_old);

static void pass_on(int number, siginfo_t *info, void *context)
{
	int place = place_of(number);
	unsigned valid = __atomic_load_n(&chosen[place].valid, __ATOMIC_ACQUIRE);
	struct sigaction action = chosen[place].copies[valid], none = {.sa_handler = SIG_DFL};
	sigset_t own;

	sigemptyset(&own);
	sigaddset(&own, number);
	if (!(action.sa_flags & SA_NODEFER))
		pthread_sigmask(SIG_BLOCK, &own, NULL);
	if (action.sa_flags & (int)SA_RESETHAND)
		change(place, &none, NULL);
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(number, info, context);
	else if (action.sa_handler == SIG_DFL)
		end_program(number, info);
	else if (action.sa_handler != SIG_IGN)
		action.sa_handler(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	void *frames[FRAMES_MAX], *code = CODE_OF((ucontext_t *)context);
	int saved = errno;
	size_t n;

	if (escape && info->si_code > 0)
		siglongjmp(*escape, 1);
	n = try_callers(frames, info, context);
	preload_event(crash, signal, kymo_i32(signal, number), kymo_i32(code, info->si_code),
		kymo_ptr(fault, info->si_code > 0 ? info->si_addr : NULL), kymo_ptr(addr, code),
		kymo_seq_ptr(callstack, (const void *const *)frames, n));
	errno = saved;
	pass_on(number, info, context);
}

/* --- what the program chooses --- */

/* Handles the signal as the program's action wants it, or ignores it. */
static int install(int number, const struct sigaction *action)
{
	struct sigaction ours = *action;
	bool is_default = !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;

	if (!(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN)
		return real.sigaction(number, action, NULL);
	/* A fault of the search for the stack must arrive. */
	ours.sa_flags = (action->sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO | SA_NODEFER;
	if (is_default)
		ours.sa_flags |= SA_ONSTACK;
	ours.sa_sigaction = on_signal;
	return real.sigaction(number, &ours, NULL);
}

/*
 * The child of a vfork() shares `chosen` with its parent, but has actions of its own. Its signals
 * are not recorded.
 */
static int change_in_child(int place, const struct sigaction *action, struct sigaction *ret_old)
{
	struct sigaction old;
	int r = real.sigaction(caught[place], action, &old);

	if (!r && ret_old)
		*ret_old = old.sa_sigaction == on_signal ? chosen[place].copies[chosen[place].valid]
							 : old;
	return r;
}

static int change(int place, const struct sigaction *action, struct sigaction *ret_old)
{
	unsigned valid, other;
	sigset_t all, before;
	int r = 0;

	if (kymo_vforked)
		return change_in_child(place, action, ret_old);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
		;
	valid = chosen[place].valid;
	other = !valid;
	if (ret_old)
		*ret_old = chosen[place].copies[valid];
	if (action) {
		chosen[place].copies[other] = *action;
		__atomic_store_n(&chosen[place].valid, other, __ATOMIC_RELEASE);
		r = install(caught[place], action);
	}
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

PRELOAD_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *ret_old)
{
	int place = place_of(number);

	if (!has_signal_functions()) {
		errno = ENOSYS;
		return -1;
	}
	if (place < 0)
		return real.sigaction(number, action, ret_old);
	return change(place, action, ret_old);
}

PRELOAD_EXPORT void (*signal(int number, void (*handler)(int)))(int)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
	int place = place_of(number);

	if (!has_signal_functions()) {
		errno = ENOSYS;
		return SIG_ERR;
	}
	if (place < 0)
		return real.signal(number, handler);
	return change(place, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* --- the begin --- */

static void free_in_child(void)
{
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
}

/* A stack that has overflowed has no room for the handler. */
static void make_stack(void)
{
	static char memory[STACK_SIZE];
	const stack_t ours = {.ss_sp = memory, .ss_size = sizeof(memory)};
	stack_t old;

	if (sigaltstack(NULL, &old) == 0 && old.ss_flags & SS_DISABLE)
		sigaltstack(&ours, NULL);
}

static __attribute__((constructor)) void catch_signals(void)
{
	int saved = errno;
#ifdef __GLIBC__
	void *frame;

	backtrace(&frame, 1); /* the first call loads a library */
#endif
	if (!has_signal_functions())
		return;
	make_stack();
	pthread_atfork(NULL, NULL, free_in_child);
	for (size_t i = 0; i < N_CAUGHT; i++) {
		struct sigaction old;

		/* Constructors before this one may have chosen already. */
		if (real.sigaction(caught[i], NULL, &old) == 0 && old.sa_sigaction != on_signal)
			change((int)i, &old, NULL);
	}
	errno = saved;
}
