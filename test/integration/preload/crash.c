/* SPDX-License-Identifier: MIT */
/* crash HOW: ends by a signal in boom(), which middle() called, or handles it. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))
#define ADDRESS	 ((volatile int *)8)

static const char *how;
static int (*volatile nothing)(void);
static sigjmp_buf again;
static volatile int n_handled;

static int is(const char *name)
{
	return strcmp(how, name) == 0;
}

static NOINLINE int overflow(int n)
{
	volatile char room[4096];

	room[0] = (char)n;
	return overflow(n + 1) + room[0];
}

static NOINLINE int boom(void)
{
	int result = 0;

	if (is("abort"))
		abort();
	else if (is("call"))
		result = nothing();
	else if (is("overflow"))
		result = overflow(0);
	else if (is("sent"))
		kill(getpid(), SIGFPE);
	else if (is("ignored"))
		raise(SIGFPE);
	else
		*ADDRESS = 1;
	return result + 1;
}

static NOINLINE int middle(void)
{
	return boom() + 1;
}

static void handle(int number, siginfo_t *info, void *context)
{
	(void)context;
	_exit(number == SIGSEGV && info->si_addr == (void *)ADDRESS ? 7 : 8);
}

static void jump(int number)
{
	(void)number;
	n_handled++;
	siglongjmp(again, 1);
}

static void note(int number)
{
	(void)number;
	n_handled++;
}

static void give_up(int number)
{
	(void)number;
	abort();
}

static char signal_stack[65536] __attribute__((aligned(64)));
static volatile size_t frame_size;

static void measure(int number)
{
	(void)number;
	frame_size = (size_t)(signal_stack + sizeof(signal_stack) -
			      (char *)__builtin_frame_address(0));
}

/*
 * Gives the thread a stack for signals of this size beyond that of the kernel's frame, which is the
 * processor's: AT_MINSIGSTKSZ also counts registers that no program here uses (AMX).
 */
static int set_signal_stack(size_t room)
{
	stack_t own = {.ss_sp = signal_stack, .ss_size = sizeof(signal_stack)};
	struct sigaction action = {.sa_handler = measure, .sa_flags = SA_ONSTACK};

	if (sigaltstack(&own, NULL) || sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1))
		return -1;
	own.ss_size = frame_size + room;
	own.ss_sp = signal_stack + sizeof(signal_stack) - own.ss_size;
	return sigaltstack(&own, NULL);
}

/* Overflows the stack of a thread that has a small stack for signals. */
static void *overflow_thread(void *room)
{
	struct sigaction action = {.sa_handler = give_up, .sa_flags = SA_ONSTACK};

	if (set_signal_stack(*(size_t *)room) == 0 && sigaction(SIGSEGV, &action, NULL) == 0)
		overflow(0);
	return NULL;
}

static int run_thread(size_t room)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, overflow_thread, &room) || pthread_join(thread, NULL);
}

static void check(int condition)
{
	if (!condition)
		_exit(9);
}

/* Chooses an action, and checks that it can be read. */
static void choose(struct sigaction *action)
{
	struct sigaction now;

	check(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
	check(sigaction(SIGSEGV, action, NULL) == 0 && sigaction(SIGSEGV, NULL, &now) == 0);
	check(now.sa_handler == action->sa_handler &&
		(now.sa_flags & ~0x4000000) == action->sa_flags);
}

/* The actions of the child of vfork() are its own. */
static void reset_in_child(void)
{
	struct sigaction now;
	int status;
	pid_t pid = vfork();

	if (!pid) {
		int same = signal(SIGSEGV, SIG_DFL) == jump;

		_exit(!same || sigaction(SIGSEGV, NULL, &now) < 0 || now.sa_handler != SIG_DFL);
	}
	check(waitpid(pid, &status, 0) == pid && !status);
}

int main(int argc, char **argv)
{
	struct sigaction own = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
	struct sigaction once = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};

	how = argc > 1 ? argv[1] : "";
	if (is("tiny") || is("small") || is("large"))
		return run_thread(is("tiny") ? 1024 : is("small") ? 4816 : 16384);
	if (is("own"))
		choose(&own);
	if (is("once"))
		choose(&once);
	if (is("ignored"))
		check(signal(SIGFPE, SIG_IGN) == SIG_DFL && signal(SIGFPE, SIG_IGN) == SIG_IGN);
	if (is("jump") || is("vfork")) {
		check(signal(SIGSEGV, jump) == SIG_DFL);
		if (is("vfork"))
			reset_in_child();
		sigsetjmp(again, 1);
		if (n_handled == 10)
			return 0;
	}
	return middle() == 2 ? 0 : 1;
}
