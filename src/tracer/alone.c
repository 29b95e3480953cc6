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

#include "ring/wait.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"

#define EXPORT	 __attribute__((visibility("default")))
#define NAP_NS	 200000
#define STARTING 5000 /* naps until the tracer's threads have started */
#define ENDING	 5000 /* and until they have ended; a state dump of the program may be running */

/* The signal mask of the program's only thread, between the two calls. */
static sigset_t signals KY_WRITTEN_EARLY;

static const struct timespec nap = {0, NAP_NS};

static bool is_about_threads(int error)
{
	return error == EINVAL || error == EUSERS;
}

static bool has_only_ours(void)
{
	unsigned ours, others;

	return tracer_count_threads(&ours, &others) && ours && !others;
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
		nanosleep(&nap, NULL);
		tracer_take_lock();
	}
}

/* Called with the lock, which it releases meanwhile. Returns false if a thread stays. */
static bool end_threads(void)
{
	unsigned ours = 1, others;

	tracer_self_before_fork();
	tracer_statedump_end();
	tracer_listener_end();
	tracer_give_lock();
	for (int i = 0; i < ENDING && tracer_count_threads(&ours, &others) && ours; i++)
		nanosleep(&nap, NULL);
	tracer_take_lock();
	return !ours;
}

EXPORT int kymo_app_threads_end(void)
{
	int saved = errno;
	bool alone;

	if (!is_about_threads(saved) || !tracer.started || tracer.off || tracer.filtered ||
		tracer_is_raw_child() || getpid() != (pid_t)syscall(SYS_gettid))
		return 0;
	tracer_lock(&signals);
	wait_for_start();
	if (!has_only_ours() || tracer_listener_died()) {
		tracer_unlock(&signals);
		errno = saved;
		return 0;
	}
	alone = end_threads();
	tracer_listener_died(); /* so the next one can have its mutex */
	tracer_give_lock();
	if (!alone)
		kymo_app_threads_start();
	errno = saved;
	return alone;
}

EXPORT void kymo_app_threads_start(void)
{
	int saved = errno;
	sigset_t old = signals;

	if (geteuid() == TRACER_OVERFLOW_UID && tracer.uid != TRACER_OVERFLOW_UID)
		tracer.uid_outside = tracer.uid;
	tracer_register_again(false);
	ky_wait_allow();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = saved;
}
