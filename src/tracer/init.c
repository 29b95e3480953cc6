/* SPDX-License-Identifier: MIT */
/*
 * Entry points: loading and unloading of objects (called by the constructors that
 * <kymo/tracepoint.h> puts into them), and the lock.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <link.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/rundir.h"
#include "base/sys.h"
#include "ring/wait.h"
#include "tracer/context.h"
#include "tracer/state.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"

/* For 'kymo doctor', which reads the file: the linker keeps it although nothing refers to it. */
static const char version[] __attribute__((used, retain)) = KY_LIBRARY_MARK KYMO_VERSION;

#define EXPORT __attribute__((visibility("default")))

void kymo_object_register(struct kymo_object *object);
void kymo_object_unregister(struct kymo_object *object);

struct tracer tracer KY_WRITTEN_EARLY;
struct tracer_set tracer_sets[TRACER_MAX_SETS];

void tracer_debug(const char *fmt, ...)
{
	va_list ap;

	if (!tracer.debug)
		return;
	va_start(ap, fmt);
	dprintf(STDERR_FILENO, "libkymo[%d]: ", (int)ky_process_number());
	vdprintf(STDERR_FILENO, fmt, ap);
	dprintf(STDERR_FILENO, "\n");
	va_end(ap);
}

#define TIMEOUT_MS 3000

/* Reads a number of milliseconds, -1 for no limit. Treats anything else as absent. */
static int read_timeout(void)
{
	const char *s = ky_env("KYMO_REGISTER_TIMEOUT");
	char *end;
	long v;

	if (!s)
		return TIMEOUT_MS;
	v = strtol(s, &end, 10);
	if (!*end && v >= -1 && v <= 3600000)
		return (int)v;
	tracer_debug(
		"KYMO_REGISTER_TIMEOUT=%s is no number of milliseconds: %d is used", s, TIMEOUT_MS);
	return TIMEOUT_MS;
}

static void init_conns(void)
{
	char dir[sizeof(tracer.conns[0].dir)];

	/* geteuid() would be one more system call at each application's start. */
	tracer.uid = (uid_t)getauxval(AT_EUID);
	tracer.uid_outside = (uid_t)-1;
	if (ky_rundir(tracer.uid, dir, sizeof(dir)) < 0 || !strcmp(dir, KY_RUN_GLOBAL))
		dir[0] = '\0';
	tracer_conn_init(&tracer.conns[0],
		dir[0] && ky_switch_is_on("KYMO_RUNDIR_ONLY") ? "" : KY_RUN_GLOBAL);
	if (tracer_standalone(&tracer.conns[1]))
		tracer.companion = &tracer.conns[1];
	else
		tracer_conn_init(&tracer.conns[1], dir);
}

/*
 * Prepares per-CPU rings. They need restartable sequences, and the means to abort those of all
 * threads from outside. Called before there is a second thread: after that, the registration takes
 * the kernel tens of milliseconds.
 */
static void init_rings(void)
{
	ky_writer_init();
	tracer.has_rseq = ky_writer_has_rseq() &&
			  ky_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0,
				  0) == 0;
}

static void on_thread_end(void *unused)
{
	(void)unused;
	if (tracer_is_raw_child())
		return;
	ky_thread_leave(); /* other destructors, and the C library, may still call the tracer */
	tracer_sets_release_thread();
	tracer_contexts_release_thread();
}

/* The thread that ends the process does not run its thread destructors. */
static __attribute__((destructor)) void on_process_end(void)
{
	if (!tracer.started)
		return;
	on_thread_end(NULL);
	if (tracer.companion && !tracer.off && !tracer_is_raw_child())
		tracer_wait_written();
}

/* Does not use keys that would make pthread_setspecific allocate. */
static void on_thread_claimed(void)
{
	if (tracer.thread_end < 32)
		pthread_setspecific(tracer.thread_end, &tracer);
}

/*
 * Blocks all signals except SIGSYS: a system call filter that traps has a handler, and kills a
 * thread that blocks the signal.
 */
static void block_signals(sigset_t *ret_old)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &all, ret_old);
}

bool tracer_is_emulated(void)
{
	return !tracer.has_rseq && !tracer.in_valgrind && !getauxval(AT_SYSINFO_EHDR);
}

void tracer_give_up(void)
{
	tracer.off = true;
	tracer_events_disable();
}

/*
 * The zygote of Chromium, and of programs that are built on it, aborts if it has a second thread.
 * glibc passes the command line to constructors.
 */
static bool is_zygote KY_WRITTEN_EARLY;

#ifdef __GLIBC__
static __attribute__((constructor(101))) void look_at_arguments(int argc, char **argv)
{
	/* If the library is loaded late, main may have changed them. */
	for (int i = 1; i < argc && argv[i]; i++)
		is_zygote |= !strcmp(argv[i], "--type=zygote");
}
#endif

/*
 * Initializes, for the first object, everything that must exist before the listener. Called under
 * the lock.
 */
static void init(void)
{
	if (getauxval(AT_SECURE) || ky_switch_is_on("KYMO_OFF")) {
		tracer.off = true;
		return;
	}
	tracer.debug = ky_switch_is_on("KYMO_DEBUG");
	if (is_zygote) {
		tracer_debug("a zygote of Chromium must have one thread: not traced");
		tracer.off = true;
		return;
	}
	tracer.allow_blocking = ky_switch_is_on("KYMO_ALLOW_BLOCKING");
	tracer.timeout_ms = read_timeout();
	tracer.may_follow = true;
	tracer.filtered_early = tracer_is_filtered();
	if (tracer.filtered_early && tracer_filter_kills()) {
		tracer_debug("a system call filter kills for calls of a tracer: not traced");
		tracer.off = true;
		return;
	}
	ky_parts_closed = tracer.filtered_early || sizeof(void *) == 4;
	init_rings();
	init_conns();
	if (pthread_key_create(&tracer.thread_end, on_thread_end) == 0)
		ky_thread_claimed = on_thread_claimed;
	tracer_last_init();
	tracer_fork_init();
}

/* True until a thread is started. Of glibc since 2.32. */
extern char __libc_single_threaded __attribute__((weak));

static bool is_single_threaded(void)
{
	return &__libc_single_threaded && __libc_single_threaded;
}

static void register_locked(struct kymo_object *object)
{
	struct ky_app_left_out left_out;
	bool connected = false;
	uint32_t n_new;

	if (!tracer.started && !tracer.off)
		init();
	if (tracer.off)
		return;
	if (tracer.started && tracer_listener_died()) {
		tracer_give_up();
		return;
	}
	if (tracer.started && !tracer.filtered)
		tracer.filtered = tracer_listener_is_filtered();
	n_new = tracer_events_add(object);
	if (!tracer.started) {
		tracer_self_add();
		tracer.started = true;
		if (tracer_listener_start(is_single_threaded()) < 0)
			tracer.off = true;
		/*
		 * Without a thread there are no state dumps; a later registration returns the
		 * error.
		 */
		tracer_statedump_ensure_thread();
	} else {
		for (uint32_t i = 0; i < TRACER_N_CONNS; i++) {
			struct tracer_conn *conn = &tracer.conns[i];

			if (n_new || tracer_left_out_get(conn->sent_left_out, &left_out))
				connected |= tracer_conn_new_events(conn);
		}
		if (connected && !tracer.filtered)
			/* else it checks by itself, within a second if anything is recorded */
			tracer_listener_wake();
	}
}

bool tracer_is_filtered(void)
{
	/* Also in a thread that shares the thread variables of another one (trial.c). */
	return ky_raw_call(SYS_prctl, PR_GET_SECCOMP) != 0;
}

bool tracer_may_be_killed(void)
{
	return tracer.filtered && !tracer.survives_filter;
}

/* Runs before the constructors of objects that register. */
__attribute__((constructor(101))) void tracer_make_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&tracer.lock, &attr);
	pthread_mutex_init(&tracer.alive, &attr);
	pthread_mutexattr_destroy(&attr);
}

void tracer_take_lock(void)
{
	if (pthread_mutex_lock(&tracer.lock) != EOWNERDEAD)
		return;
	pthread_mutex_consistent(&tracer.lock);
	tracer_give_up();
}

void tracer_give_lock(void)
{
	bool turned = tracer.turned;

	tracer.turned = false;
	pthread_mutex_unlock(&tracer.lock);
	if (turned)
		ky_call(SYS_futex, &tracer.turn, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void tracer_lock(sigset_t *ret_old)
{
	block_signals(ret_old);
	ky_wait_forbid(); /* the lock keeps the listener from making room */
	tracer_take_lock();
}

void tracer_unlock(const sigset_t *old)
{
	tracer_give_lock();
	ky_wait_allow();
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

bool tracer_is_within(const struct dl_phdr_info *info, const void *address)
{
	uintptr_t at = (uintptr_t)address - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && at >= p->p_vaddr && at - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Examines only the first of all objects, which is the main program. */
static int look_at_main(struct dl_phdr_info *info, size_t size, void *object)
{
	(void)size;
	return tracer_is_within(info, object) ? 1 : -1;
}

/*
 * Marks an object of the main program, which stays until the end: when it unregisters, the process
 * ends, and must not wait for any lock.
 */
void tracer_object_look(struct kymo_object *object)
{
	if (dl_iterate_phdr(look_at_main, object) == 1)
		object->cookie = &tracer;
}

/*
 * Registers the events of an object. Its constructor calls this once, before any of its code runs.
 * The caller keeps the object, which must stay valid until it is unregistered. Returns when the
 * daemons have enabled the events of active sessions, or after KYMO_REGISTER_TIMEOUT; at once if no
 * session is active.
 */
EXPORT void kymo_object_register(struct kymo_object *object)
{
	int saved = errno;
	sigset_t old;

	if (object->size < sizeof(*object) || object->version != KYMO_ABI_VERSION ||
		tracer_is_raw_child())
		return;
	tracer_object_look(object);
	tracer_lock(&old);
	register_locked(object);
	tracer_unlock(&old);
	if (!tracer.off)
		tracer_wait_registered();
	errno = saved;
}

/* Unregisters an object that is about to be unloaded: none of its code runs any more. */
EXPORT void kymo_object_unregister(struct kymo_object *object)
{
	int saved = errno;
	sigset_t old;

	if (tracer.off || object->cookie == &tracer || tracer_is_raw_child())
		return;
	tracer_lock(&old);
	tracer_statedump_forget_object(object);
	tracer_state_forget_object(object);
	tracer_events_remove(object);
	tracer_unlock(&old);
	errno = saved;
}
