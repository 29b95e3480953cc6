/* SPDX-License-Identifier: MIT */
/*
 * fork, all of it: what the parent prepares, what the kernel does, and what the child resets.
 *
 * The parent takes the lock and blocks signals, so that the child finds consistent data and no
 * handler records in the child before it has registered. A call of ours into the dynamic linker
 * must not be under way: its lock would stay held in the child.
 *
 * The kernel zeroes the memory that is marked MADV_WIPEONFORK: the hooks of events, which lead to
 * the parent's rings, and the page `home` below. So a child that nobody resets (raw clone(),
 * _Fork()) records nothing, and tracer_is_raw_child() recognises it.
 *
 * The child of fork() is a process of its own: reset_process() drops all that is the parent's, in
 * an order that its comments justify, and then it registers as itself.
 */
#include <sys/mman.h>

#include "base/sys.h"
#include "ring/wait.h"
#include "tracer/context.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"
#include "tracer/trigger.h"

/* A page that children find zeroed, however they were made. (Before Linux 4.14 they do not.) */
static union {
	bool is_home;
	char page[4096];
} home __attribute__((aligned(4096)));

/* The signal mask of the thread that forks; under the lock. */
static sigset_t signals_at_fork;

void tracer_fork_mark_home(void)
{
	madvise(&home, sizeof(home), MADV_WIPEONFORK);
}

bool tracer_is_raw_child(void)
{
	return tracer.started && !tracer.off && !home.is_home;
}

/* All sanitizers' runtimes have it. */
extern void __sanitizer_print_stack_trace(void) __attribute__((weak));

/*
 * A thread that starts allocates memory. The C library's allocator is prepared for fork; those of
 * sanitizers are not: if such a thread held their lock, the child would wait for ever.
 */
static void wait_for_starting_threads(void)
{
	enum { PATIENCE_MS = 1000 };
	struct timespec nap = {.tv_nsec = 1000000};

	if (!__sanitizer_print_stack_trace || tracer.filtered)
		return;
	for (int i = 0; i < PATIENCE_MS && __atomic_load_n(&tracer.n_starting, __ATOMIC_ACQUIRE);
		i++)
		ky_sys_nanosleep(&nap);
}

static void before_fork(void)
{
	sigset_t old;

	wait_for_starting_threads();
	tracer_lock(&old);
	if (tracer_listener_died())
		tracer_give_up();
	tracer_self_before_fork();
	signals_at_fork = old;
}

static void after_fork_parent(void)
{
	sigset_t old = signals_at_fork;

	tracer_unlock(&old);
}

/* Returns true if the parent had a daemon, for whose reply the child is to wait, too. */
static bool reset_conns(void)
{
	bool connected = false;

	for (uint32_t i = 0; i < TRACER_N_CONNS; i++) {
		connected |= tracer.conns[i].socket.fd >= 0;
		tracer_conn_reset(&tracer.conns[i]);
	}
	return connected;
}

/* is_child: of fork. Returns what reset_conns() returns. */
static bool reset_process(bool is_child)
{
	bool connected = reset_conns(); /* descriptors only: the sets still exist */

	/*
	 * Events first forget their hooks, which lead to sets; then the sets are released; then the
	 * memory of both is used again.
	 */
	tracer_events_reset();
	tracer_sets_reset(is_child);
	tracer_mem_reset();
	tracer_triggers_reset();
	tracer_contexts_reset(); /* values that were kept, counters, threads inside callbacks */
	tracer_thread_id_reset();
	tracer_statedump_reset(); /* its thread does not exist here */
	ky_thread_forget_process();
	tracer.ending = false;
	tracer.n_starting = 0;
	tracer.survives_filter = false;
	return connected;
}

/* A new thread also makes the C library's system calls, with all signals blocked. */
static bool may_start_thread(void)
{
	return !tracer.filtered && (tracer.filtered_early || !tracer_has_become_filtered());
}

/*
 * In the only thread of the process. QEMU (7.2) aborts a child that starts a thread if its parent
 * had more than one.
 */
void tracer_register_again(bool is_child)
{
	bool connected = reset_process(is_child);

	tracer.off = (is_child && tracer_is_emulated()) || !may_start_thread() ||
		     tracer_listener_start(true) < 0 || tracer_statedump_ensure_thread() < 0;
	if (connected && !tracer.off)
		tracer_wait_registered();
	else if (!tracer.off)
		tracer_note_unheard();
}

static void after_fork_child(void)
{
	int saved = errno;
	sigset_t old = signals_at_fork;

	tracer_make_lock(); /* its holder is a thread of the parent */
	if (!tracer.off) {
		home.is_home = true;
		tracer_last_set_main(); /* the only thread is the main thread */
		tracer_register_again(true);
	}
	ky_wait_allow();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = saved;
}

void tracer_fork_init(void)
{
	home.is_home = true;
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}
