/* SPDX-License-Identifier: MIT */
/*
 * Calls that the kernel allows only to a process of one thread: unshare(2) and setns(2) of a user
 * namespace, setns(2) of a time namespace. A program of one thread would notice the tracer's, so
 * these end before such a call, and start after it. Meanwhile the process is not registered.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "ring/wait.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"

#define EXPORT	 __attribute__((visibility("default")))
#define NAP_NS	 200000
#define STARTING 5000 /* naps until the tracer's threads have started */
#define ENDING	 5000 /* and until they have ended */

/*
 * Between the two calls. The library that calls may be one of several, each of which repeats the
 * call of the next one.
 */
static struct {
	bool alone;
	sigset_t signals; /* signal mask of the program's only thread */
} state KY_WRITTEN_EARLY;

static const struct timespec nap = {0, NAP_NS};

static bool is_about_threads(int error)
{
	return error == EINVAL || error == EUSERS;
}

/* Returns true for a filter installed since the start: it may kill for what follows. */
static bool may_kill(void)
{
	return !tracer.filtered_early && tracer_is_filtered();
}

static bool has_only_ours(void)
{
	unsigned ours, others;

	return ky_process_number() == ky_thread_number() && tracer_count_threads(&ours, &others) &&
	       ours && !others;
}

/*
 * Threads that are just starting are not known as ours yet. Called with the lock, which it releases
 * meanwhile.
 */
static void wait_for_start(void)
{
	for (int i = 0; i < STARTING && (!tracer_listener_runs() || tracer_statedump_starts());
		i++) {
		tracer_give_lock();
		ky_sys_nanosleep(&nap);
		tracer_take_lock();
	}
}

/* Waits until no thread but the caller is left. Releases the lock meanwhile. */
static void wait_for_end(void)
{
	unsigned ours, others;

	tracer_give_lock();
	for (int i = 0; i < ENDING && tracer_count_threads(&ours, &others) && ours + others; i++)
		ky_sys_nanosleep(&nap);
	tracer_take_lock();
}

/*
 * Called with the lock, which it releases meanwhile. Returns false, with the threads as before, if
 * a function of the program runs in one, or the listener waits for a file system that hangs.
 */
static bool end_threads(void)
{
	tracer_self_before_fork();
	if (tracer_statedump_runs())
		return false;
	tracer_statedump_end();
	tracer_listener_end();
	wait_for_end();
	if (!tracer_listener_runs())
		return true; /* else a thread that is left uses nothing any more */
	tracer_listener_stay();
	tracer_statedump_start_again();
	return false;
}

EXPORT int kymo_app_threads_end(void)
{
	int saved = errno;

	if (!is_about_threads(saved) || state.alone || !tracer.started || tracer.off ||
		tracer.filtered || tracer_is_raw_child() || may_kill())
		return 0;
	tracer_lock(&state.signals);
	if (tracer_listener_died())
		tracer_give_up();
	wait_for_start();
	state.alone = !tracer.off && has_only_ours() && end_threads();
	if (state.alone) {
		tracer_listener_died(); /* so the next one can have its mutex */
		tracer_give_lock();
	} else {
		tracer_unlock(&state.signals);
	}
	errno = saved;
	return state.alone;
}

EXPORT void kymo_app_threads_start(void)
{
	int saved = errno;
	sigset_t old = state.signals;
	uid_t uid = ky_effective_user();

	if (uid != tracer.uid)
		tracer.uid_outside = uid == TRACER_OVERFLOW_UID ? tracer.uid : (uid_t)-1;
	tracer.uid = uid;
	state.alone = false;
	tracer_register_again(false);
	ky_wait_allow();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = saved;
}
