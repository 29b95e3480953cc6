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
#define NOINLINE   __attribute__((noinline))

/* Of an alternate stack, in bytes: what must be left to record the event, and to find callers. */
#define ROOM_EVENT   3072u
#define ROOM_CALLERS 4096u
/* Bytes that a program's handler may use before it calls abort(). */
#define ROOM_HANDLER 4096u

static const int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
#define N_CAUGHT (sizeof(caught) / sizeof(caught[0]))

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	void (*(*signal)(int, void (*)(int)))(int);
} real;

static const struct preload_symbol symbols[] = {
	PRELOAD_SYMBOL(sigaction),
	PRELOAD_SYMBOL(signal),
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

/* The search of a thread for its stack. */
static PRELOAD_TLS struct {
	const char *volatile place; /* of the stack, where it began; NULL: there is none */
	sigjmp_buf escape;
	void *frames[FRAMES_MAX];
	void **first;	   /* of the frames, that of the interrupted code's caller */
	volatile size_t n; /* frames from there on */
} search;

static struct preload_functions functions = PRELOAD_FUNCTIONS(symbols);
static PRELOAD_TLS bool searching;

static bool has_signal_functions(void)
{
	return preload_have(&functions, &searching);
}

/* Guard `chosen` while all signals are blocked. */
static void lock_actions(void)
{
	while (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
		;
}

static void unlock_actions(void)
{
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
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
static void find_callers(const siginfo_t *info, const ucontext_t *context)
{
#ifdef __GLIBC__
	void *code = CODE_OF(context);
	int n = backtrace(search.frames, FRAMES_MAX), i = 0;

	while (i < n && search.frames[i] != code)
		i++;
	if (i + 1 < n) {
		search.first = search.frames + i + 1;
		search.n = (size_t)(n - i - 1);
	} else if (info->si_code > 0 && info->si_addr == code) {
		/* A call of an address without code: only the caller is known. */
		search.first = search.frames;
		search.frames[0] = RETURN_OF(context);
		search.n = 1;
	}
#endif
}

/* Lets the faults arrive, unless the program blocks them. */
static void allow_faults(const ucontext_t *context)
{
	sigset_t faults;

	sigemptyset(&faults);
	for (size_t i = 0; i < N_CAUGHT; i++) {
		if (caught[i] != SIGABRT && !sigismember(&context->uc_sigmask, caught[i]))
			sigaddset(&faults, caught[i]);
	}
	pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

/* Returns with the mask that it was called with, also after a fault. */
static NOINLINE void try_callers(const siginfo_t *info, const ucontext_t *context)
{
	search.n = 0;
	if (!sigsetjmp(search.escape, 1)) {
		search.place = __builtin_frame_address(0);
		allow_faults(context);
		find_callers(info, context);
		siglongjmp(search.escape, 1); /* restores the mask, too */
	}
	search.place = NULL;
}

/* Returns how much is left of the alternate stack; SIZE_MAX if the handler runs on another one. */
static size_t room_left(const ucontext_t *context)
{
	const char *here = __builtin_frame_address(0), *end = context->uc_stack.ss_sp;

	return here >= end && here < end + context->uc_stack.ss_size ? (size_t)(here - end)
								     : SIZE_MAX;
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

/*
 * Has abort() end the program at once, if the program does not handle SIGABRT: a handler that calls
 * it from a small stack has no room for another signal.
 */
static void give_up_abort(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	const struct sigaction *now;
	int place = place_of(SIGABRT);

	lock_actions();
	now = &chosen[place].copies[chosen[place].valid];
	if (!(now->sa_flags & SA_SIGINFO) && now->sa_handler == SIG_DFL)
		real.sigaction(SIGABRT, &action, NULL);
	unlock_actions();
}

/* The program's handler. */
struct handler {
	union {
		void (*simple)(int);
		void (*with_info)(int, siginfo_t *, void *);
	};
	bool has_info;
};

/* Makes everything as the program's handler expects it, and returns the handler. */
static NOINLINE struct handler prepare(int number, const ucontext_t *context)
{
	int place = place_of(number);
	unsigned valid = __atomic_load_n(&chosen[place].valid, __ATOMIC_ACQUIRE);
	struct sigaction action = chosen[place].copies[valid], none = {.sa_handler = SIG_DFL};
	struct handler handler = {.has_info = action.sa_flags & SA_SIGINFO};
	size_t room = room_left(context);

	if (room != SIZE_MAX && 2 * room < context->uc_stack.ss_size + ROOM_HANDLER)
		give_up_abort();
	if (action.sa_flags & (int)SA_RESETHAND)
		change(place, &none, NULL);
	if (!(action.sa_flags & SA_NODEFER))
		sigaddset(&action.sa_mask, number);
	sigorset(&action.sa_mask, &action.sa_mask, &context->uc_sigmask);
	pthread_sigmask(SIG_SETMASK, &action.sa_mask, NULL);
	if (handler.has_info)
		handler.with_info = action.sa_sigaction;
	else
		handler.simple = action.sa_handler;
	return handler;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	struct handler handler = prepare(number, context);

	if (handler.has_info)
		handler.with_info(number, info, context);
	else if (handler.simple == SIG_DFL)
		end_program(number, info);
	else if (handler.simple != SIG_IGN)
		handler.simple(number);
}

static NOINLINE void record(int number, const siginfo_t *info, const ucontext_t *context)
{
	size_t room = room_left(context), n = 0;
	void *code = CODE_OF(context);
	int saved = errno;

	/* A signal that was sent may interrupt the search. */
	if (room >= ROOM_CALLERS && !search.place) {
		try_callers(info, context);
		n = search.n;
	}
	if (room >= ROOM_EVENT)
		preload_event(crash, signal, kymo_i32(signal, number),
			kymo_i32(code, info->si_code),
			kymo_ptr(fault, info->si_code > 0 ? info->si_addr : NULL),
			kymo_ptr(addr, code),
			kymo_seq_ptr(callstack, (const void *const *)search.first, n));
	errno = saved;
}

/* A search that had too little room after all: the kernel uses the stack from its start again. */
static bool has_overwritten_search(void)
{
	return (const char *)__builtin_frame_address(0) > search.place;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	if (!search.place || info->si_code <= 0)
		record(number, info, context);
	else if (!has_overwritten_search())
		siglongjmp(search.escape, 1);
	else
		search.place = NULL;
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
	ours.sa_flags = (action->sa_flags & ~(int)(SA_RESETHAND | SA_NODEFER)) | SA_SIGINFO;
	sigfillset(&ours.sa_mask);
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
	lock_actions();
	valid = chosen[place].valid;
	other = !valid;
	if (ret_old)
		*ret_old = chosen[place].copies[valid];
	if (action) {
		chosen[place].copies[other] = *action;
		__atomic_store_n(&chosen[place].valid, other, __ATOMIC_RELEASE);
		r = install(caught[place], action);
	}
	unlock_actions();
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
	pthread_atfork(NULL, NULL, unlock_actions);
	for (size_t i = 0; i < N_CAUGHT; i++) {
		struct sigaction old;

		/* Constructors before this one may have chosen already. */
		if (real.sigaction(caught[i], NULL, &old) == 0 && old.sa_sigaction != on_signal)
			change((int)i, &old, NULL);
	}
	errno = saved;
}
