/* SPDX-License-Identifier: MIT */
/*
 * The one thread that libkymo adds to an application. It sleeps in poll() until a daemon sends
 * something or starts. While a session records, it also wakes from time to time, less and less
 * often, to check whether the application has begun to use another CPU's ring. It populates that
 * ring's memory before the writers reach it.
 */
#include <fcntl.h>
#include <link.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/small-file.h"
#include "base/sys.h"
#include "ring/wait.h"
#include "tracer/locks.h"
#include "tracer/statedump.h"
#include "tracer/trigger.h"

#define POPULATE_MIN_MS 1
#define POPULATE_MAX_MS 1000
#define POOL_MAX_MS	100 /* if threads may start at any time */
/*
 * A daemon without a sign of life in this time counts as hung, and applications start without it:
 * 50 ms late at most.
 */
#define ALIVE_MS 40
/* of CPU time in that time, 10 ms each: with more, the daemon is not starved */
#define ALIVE_TICKS 2
/* Longest time that an application waits at its end for its companion. */
#define WRITTEN_MS 500
/* Messages of one daemon that are handled before those of others. */
#define AT_ONCE	   16
#define STACK_SIZE ((size_t)128 << 10)

/*
 * The application's threads wake the listener by a signal to it. The signal is blocked, so it only
 * makes this descriptor readable. This needs no path, so it works behind chroot() too, and no
 * descriptor in the application's table.
 *
 * The descriptor also takes such signals that are sent to the whole process, so the application
 * must not use the signal. The C library reserves this one, and sends it to single threads only
 * (pthread_cancel, timers). Its sets of signals do not contain it.
 */
#define WAKE_SIGNAL 32

static struct {
	int wake_fd; /* signalfd; in the listener's table of descriptors */
	pid_t tid;   /* 0: does not exist yet, or is about to end */
	bool ending;
	int populate_ms; /* until the next check; -1: nothing records */
	int populate_max_ms;
	int main_ms;	   /* until the next check whether main lives */
	size_t stack_size; /* 0: not computed yet */
} listener = {.wake_fd = -1, .populate_ms = -1};

/* In a program with a thread sanitizer. */
extern void __tsan_init(void) __attribute__((weak, visibility("default")));

/*
 * The numbers of the listener's descriptors begin behind the standard files: what the program's
 * wrappers of system calls print in this thread must not go to a daemon. A thread sanitizer takes
 * equal numbers for the same file, whatever the table, and would report races of the program's
 * threads with the listener: then they begin where a program has none.
 */
static int first_number(void)
{
	struct rlimit limit;

	return __tsan_init && ky_sys_getrlimit(RLIMIT_NOFILE, &limit) == 0
		       ? (int)KY_MIN(limit.rlim_cur / 2, (rlim_t)512)
		       : STDERR_FILENO + 1;
}

/* Opens more of them while a smaller number is free. They refuse what is written to them. */
static int open_wake_fd(void)
{
	uint64_t signals = UINT64_C(1) << (WAKE_SIGNAL - 1);
	int first = -1, least = KY_MAX(first_number(), STDERR_FILENO + 1), fd;

	if (ky_call(SYS_rt_sigprocmask, SIG_BLOCK, &signals, NULL, sizeof(signals)) < 0)
		return -1;
	do {
		fd = (int)ky_call(
			SYS_signalfd4, -1, &signals, sizeof(signals), SFD_NONBLOCK | SFD_CLOEXEC);
		first = first < 0 ? fd : first;
	} while (fd >= 0 && fd < least - 1);
	return first;
}

/*
 * Gives the listener its own table of descriptors. So the application's numbers do not change, it
 * cannot close ours, its limit does not include ours, and children inherit none. Before Linux 5.9
 * the table is shared, and there is no wake-up descriptor. Returns the wake-up descriptor, or -1.
 * Called without the lock, which the thread that started us still holds.
 */
static int own_descriptors(void)
{
	if (ky_call(SYS_close_range, tracer.debug ? 3 : 0, ~0U, CLOSE_RANGE_UNSHARE) < 0)
		return -1;
	tracer_fd_own_table();
	if (tracer.debug) {
		ky_sys_close(STDIN_FILENO);
		ky_sys_close(STDOUT_FILENO);
	}
	return open_wake_fd();
}

/* The calling thread shares its current directory and root with no other. Returns 0, or -1. */
static long unshare_directories(void)
{
	return ky_call(SYS_unshare, CLONE_FS);
}

/*
 * Gives the listener its own current directory and root: else the application could not enter
 * another mount namespace. The current directory is one that keeps no other file system in use when
 * the application has left it.
 * After an unshare without effect, chdir would change the application's directory. A filter can do
 * that, and so can an unshare() that the application defines: hence the system calls.
 */
static void own_directories(void)
{
	bool are_ours = unshare_directories() == 0 && !tracer.filtered && !tracer.filtered_early;

	if (are_ours && ky_call(SYS_chdir, "/") < 0)
		tracer_debug("the listener keeps its current directory: error %d", errno);
}

/* The lock's first word has the number of its owner while that lives (robust futexes). */
static pid_t living_owner(void)
{
	uint32_t word;

	__atomic_load((const uint32_t *)&tracer.alive, &word, __ATOMIC_RELAXED);
	return (pid_t)(word & FUTEX_TID_MASK);
}

/* Another thread may have the number of one that a filter has killed: the signal would end it. */
static bool listener_lives(void)
{
	return living_owner() == listener.tid;
}

bool tracer_listener_exists(void)
{
	return __atomic_load_n(&tracer.n_starting, __ATOMIC_ACQUIRE) || living_owner();
}

void tracer_listener_wake(void)
{
	if (!listener.tid || listener.wake_fd < 0 || !listener_lives())
		return; /* it sends everything when it connects, or checks by itself */
	if (ky_call(SYS_tgkill, ky_process_number(), listener.tid, WAKE_SIGNAL) < 0)
		tracer_debug("the listener was not woken");
}

bool tracer_has_died_with(pthread_mutex_t *m)
{
	int r = pthread_mutex_trylock(m);

	if (r == EOWNERDEAD)
		pthread_mutex_consistent(m);
	if (r != EBUSY)
		pthread_mutex_unlock(m);
	return r == EOWNERDEAD;
}

bool tracer_listener_died(void)
{
	return tracer_has_died_with(&tracer.alive);
}

bool tracer_listener_is_filtered(void)
{
	char path[48], buf[4096], *mode;

	if (!listener.tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)listener.tid);
	ky_read_text(AT_FDCWD, path, buf, sizeof(buf));
	mode = strstr(buf, "\nSeccomp:\t");
	return mode && mode[sizeof("\nSeccomp:\t") - 1] != '0';
}

void tracer_listener_stay(void)
{
	__atomic_store_n(&listener.ending, false, __ATOMIC_RELEASE);
}

bool tracer_listener_runs(void)
{
	return listener.tid != 0;
}

bool tracer_listener_is(pid_t thread)
{
	return thread == listener.tid;
}

void tracer_listener_end(void)
{
	__atomic_store_n(&listener.ending, true, __ATOMIC_RELEASE);
	tracer_listener_wake();
}

static void arm_populate(void)
{
	listener.populate_ms = -1;
	listener.populate_max_ms = POPULATE_MAX_MS;
	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		if (!tracer_sets[i].conn || !tracer_sets[i].set.started)
			continue;
		listener.populate_ms = POPULATE_MIN_MS;
		if (tracer_sets[i].set.geo.mode == KY_SET_PER_THREAD)
			listener.populate_max_ms = POOL_MAX_MS;
	}
}

static void populate(void)
{
	if (tracer_sets_populate())
		listener.populate_ms = POPULATE_MIN_MS;
	else
		listener.populate_ms = KY_MIN(listener.populate_ms * 2, listener.populate_max_ms);
}

/* Without a wake-up descriptor, the listener checks this often for objects that were loaded. */
#define LOOK_MS 200
/*
 * The listener checks this often whether main still lives, more and more rarely: no event reports
 * that a thread was killed, or has called SYS_exit.
 */
#define MAIN_MIN_MS 50
#define MAIN_MAX_MS 5000
/* The listener checks this often for messages that it cannot poll for: commands wait for it. */
#define LIMITED_MS 20

#define WAKE   TRACER_N_CONNS
#define N_POLL (TRACER_N_CONNS + 1)

/* Returns the shorter of a timeout for poll() and the time until due_ns, rounded up. */
static int earlier(int timeout_ms, uint64_t due_ns)
{
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);
	uint64_t ms = due_ns > now ? (due_ns - now + 999999) / 1000000 : 0;

	return timeout_ms < 0 || ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
}

/* Fills in what to poll. Returns the shortest of the timeouts. */
static int prepare_poll(struct pollfd *p)
{
	int timeout = listener.populate_ms;

	if (timeout < 0 || timeout > listener.main_ms)
		timeout = listener.main_ms;
	for (uint32_t i = 0; i < TRACER_N_CONNS; i++) {
		struct tracer_conn *c = &tracer.conns[i];

		p[i] = (struct pollfd){
			.fd = c->socket.fd >= 0 ? c->socket.fd : c->wake.fd, .events = POLLIN};
		if (c->retry_ns)
			timeout = earlier(timeout, c->retry_ns);
	}
	if (listener.wake_fd < 0 && (timeout < 0 || timeout > LOOK_MS))
		timeout = LOOK_MS;
	p[WAKE] = (struct pollfd){.fd = listener.wake_fd, .events = POLLIN};
	return timeout;
}

/*
 * Returns true if poll() reported that the time is over long before it was: a filter lets the call
 * succeed that the kernel does not make.
 */
static bool was_no_wait(uint64_t begin, int timeout_ms)
{
	uint64_t ms = (ky_clock_ns(CLOCK_MONOTONIC) - begin) / 1000000;

	return timeout_ms < 0 || (timeout_ms > 1 && ms < (uint64_t)timeout_ms / 2);
}

/*
 * Polls. The kernel refuses to poll more descriptors than the program may open (EINVAL;
 * RLIMIT_NOFILE, as in sandboxes). Then this function polls fewer, for LIMITED_MS at most, and
 * reports the other sockets as readable. Sets *timeout to the time that it has polled for.
 */
static int poll_or_look(struct pollfd *p, int *timeout)
{
	int n = ky_sys_poll(p, N_POLL, *timeout);
	uint32_t n_polled = N_POLL;

	while (n < 0 && errno == EINVAL && n_polled) {
		if (*timeout < 0 || *timeout > LIMITED_MS)
			*timeout = LIMITED_MS;
		n = ky_sys_poll(p, --n_polled, *timeout);
	}
	for (uint32_t i = n_polled; n >= 0 && i < TRACER_N_CONNS; i++)
		p[i].revents = tracer.conns[i].socket.fd >= 0 ? POLLIN : 0;
	return n;
}

static void serve_conn(struct tracer_conn *c, short revents)
{
	bool received = false;

	if (revents)
		tracer_conn_verify(c);
	/*
	 * Before an order is answered: its sender may rely on the events of objects loaded until
	 * then.
	 */
	tracer_conn_send_late(c);
	if (revents && c->socket.fd >= 0) {
		for (int i = 0; i < AT_ONCE && tracer_conn_receive(c); i++) {
			received = true;
			if (tracer.turned)
				break;
			tracer_conn_verify(c);
		}
		if (received)
			arm_populate();
	} else if (revents || (c->retry_ns && ky_clock_ns(CLOCK_MONOTONIC) >= c->retry_ns) ||
		   (!tracer_may_be_killed() && tracer_conn_is_cut_off(c))) {
		if (tracer_may_be_killed())
			c->retry_ns = 0; /* no daemon exists: none of our calls is worth the risk */
		else
			tracer_conn_try(c);
	}
	if (c->socket.fd < 0)
		tracer_sets_follow(c);
	/* A thread that waits for what was just received goes on first. */
	if (!tracer.turned)
		tracer_conn_send_late(c);
}

/* Returns true if the last poll brought a message of a daemon. */
static bool has_talked(const struct pollfd *p, int n)
{
	for (uint32_t i = 0; n > 0 && i < TRACER_N_CONNS; i++)
		if (p[i].revents && tracer.conns[i].socket.fd >= 0)
			return true;
	return false;
}

/*
 * Checks for a filter. Called before any system call for which a filter may kill, and without the
 * lock.
 */
static void look_for_filter(void)
{
	if (!tracer.filtered_early && !tracer.filtered)
		tracer.filtered = tracer_is_filtered();
	ky_parts_closed |= tracer.filtered;
}

/* Returns true when the listener is to end, and the process with it. */
static bool look_for_main(void)
{
	enum tracer_main state = tracer_last_look();

	if (state != TRACER_MAIN_LIVES)
		listener.main_ms = MAIN_MIN_MS;
	return state == TRACER_MAIN_WAS_LAST;
}

static bool is_connected(void)
{
	for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
		if (tracer.conns[i].socket.fd >= 0)
			return true;
	return false;
}

/*
 * Returns true if the application is another user for a time only (seteuid(2), as a server is while
 * it works for a user): it can become the registered one again.
 */
static bool may_become_again(uid_t uid)
{
	uid_t real, effective, saved;

	return tracer.may_follow && (tracer.filtered_early || !tracer.filtered) &&
	       ky_sys_getresuid(&real, &effective, &saved) == 0 && (real == uid || saved == uid);
}

/*
 * Checks for a change of user. It interrupts each of the application's threads (setuid(3)), so the
 * listener sees it at once. A user that has just got an id in its user namespace is the same user.
 */
static void look_for_user(void)
{
	uid_t uid, outside;

	if (tracer_may_be_killed() && !is_connected())
		return; /* nothing depends on the user any more */
	uid = ky_effective_user();
	if (uid == tracer.uid || may_become_again(tracer.uid))
		return;
	tracer.uid = uid;
	if (tracer.uid_outside != (uid_t)-1 && tracer_user_outside(uid, &outside) &&
		outside == tracer.uid_outside)
		return;
	tracer.uid_outside = (uid_t)-1;
	for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
		tracer_conn_renew(&tracer.conns[i]);
}

/* Reports to the daemons that a trigger has fired, one of which has the session. */
static void report_triggers(void)
{
	if (!tracer_triggers_fired())
		return;
	for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
		tracer_conn_send_fired(&tracer.conns[i]);
}

/*
 * Gives the lock and wakes the threads that wait for the daemon. A thread that is woken on this CPU
 * would otherwise run only when the listener sleeps.
 */
static void wake_and_yield(void)
{
	const bool yields = tracer.turned && !tracer.filtered && !tracer.filtered_early;

	tracer_give_lock();
	if (yields)
		ky_sys_sched_yield();
}

static bool is_ending(void)
{
	return __atomic_load_n(&listener.ending, __ATOMIC_ACQUIRE);
}

static void listen_to_daemons(void)
{
	struct pollfd p[N_POLL];
	char infos[sizeof(struct signalfd_siginfo) * 4];
	int wake_fd;

	tracer_fork_mark_home();
	ky_sys_prctl(PR_SET_NAME, "kymo-listener");
	tracer_follow_main();
	ky_wait_forbid();
	own_directories();
	wake_fd = own_descriptors();
	tracer_take_lock();
	tracer.uid = ky_effective_user(); /* the parent's listener may not have noticed a change */
	listener.wake_fd = wake_fd;
	listener.tid = ky_thread_number();
	for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
		tracer_conn_begin(&tracer.conns[i]);
	tracer.name[0] = '\0';
	while (!is_ending()) {
		bool limit = tracer_sets_need_limit();
		int timeout, n;
		uint64_t begin;

		tracer_self_look();
		timeout = prepare_poll(p);
		if (tracer.turned)
			timeout = 0; /* replies are left to send */
		wake_and_yield();
		begin = ky_clock_ns(CLOCK_MONOTONIC);
		n = poll_or_look(p, &timeout);
		if (n < 0 && errno != EINTR) {
			/* A filter installed after the last look: as if it had killed us. */
			tracer.filtered = true;
			return;
		}
		if (look_for_main())
			return;
		look_for_filter();
		if (n == 0 && tracer.filtered && was_no_wait(begin, timeout))
			return; /* likewise */
		if (n == 0 && timeout)
			listener.main_ms = KY_MIN(listener.main_ms * 2, MAIN_MAX_MS);
		/* Not at once: programs that exit within a millisecond are spared some 14 calls. */
		if (n == 0 && timeout && limit)
			tracer_sets_limit();
		if (n == 0 && timeout && listener.populate_ms > 0)
			populate();
		tracer_take_lock();
		if (!is_ending())
			look_for_user();
		if (n > 0 && p[WAKE].revents &&
			ky_sys_read(listener.wake_fd, infos, sizeof(infos)) <= 0)
			listener.wake_fd = -1;
		report_triggers();
		for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
			serve_conn(&tracer.conns[i], p[i].revents);
		tracer.survives_filter |= tracer.filtered && has_talked(p, n);
	}
	listener.tid = 0;
	tracer_give_lock();
}

static void *listen_loop(void *arg)
{
	struct timespec nap = {.tv_nsec = 1000000};

	pthread_mutex_lock(&tracer.alive);
	__atomic_fetch_sub(&tracer.n_starting, 1, __ATOMIC_RELEASE);
	look_for_filter();
	if (!tracer.filtered)
		listen_to_daemons();
	/* else already: nobody has waited for the listener, and main may be being killed */
	for (int i = 0; i < MAIN_MIN_MS && tracer.filtered && !look_for_main(); i++)
		ky_sys_nanosleep(&nap);
	if (look_for_main())
		tracer_last_end_as_main();
	/*
	 * The C library ends a thread with SIGSYS blocked, too: a trap in its calls would kill the
	 * process.
	 */
	if (tracer.filtered)
		ky_call(SYS_exit, 0);
	return arg;
}

/*
 * Adds up the static TLS of all objects, which glibc takes from a thread's stack, and finds out
 * whether mappings must be small.
 */
static int look_at_object(struct dl_phdr_info *info, size_t size, void *sum)
{
	(void)size;
	if (tracer_object_locks(info))
		tracer.spare_mappings = tracer.may_lock = ky_parts_closed = true;
	/* valgrind's programs have no filters */
	if (info->dlpi_name && strstr(info->dlpi_name, "/vgpreload_"))
		tracer.spare_mappings = tracer.in_valgrind = true;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

int tracer_listener_start(bool is_alone)
{
	/*
	 * Computed once: in a forked child, a thread that does not exist there may hold the dynamic
	 * linker's lock.
	 */
	pthread_attr_t attr;
	const bool is_plain = is_alone && !tracer.filtered && !tracer.filtered_early;
	pthread_t thread;
	int r;

	/* The calling thread is the main thread. /proc takes several times as long. */
	if (!is_plain || ky_sys_prctl(PR_GET_NAME, tracer.name) < 0)
		tracer.name[0] = '\0';
	listener.populate_ms = -1;
	listener.tid = 0;
	listener.wake_fd = -1;
	listener.ending = false;
	listener.main_ms = MAIN_MIN_MS;
	if (!listener.stack_size) {
		listener.stack_size = STACK_SIZE;
		dl_iterate_phdr(look_at_object, &listener.stack_size);
	}
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, ky_align_up(listener.stack_size, 4096));
	__atomic_fetch_add(&tracer.n_starting, 1, __ATOMIC_RELAXED);
	r = pthread_create(&thread, &attr, listen_loop, NULL);
	if (r)
		__atomic_fetch_sub(&tracer.n_starting, 1, __ATOMIC_RELAXED);
	else if (is_plain && unshare_directories() < 0)
		tracer_debug("the program shares its current directory with the listener");
	pthread_attr_destroy(&attr);
	return -r;
}

void tracer_wake_waiters(void)
{
	__atomic_fetch_add(
		&tracer.turn, 1, __ATOMIC_RELEASE); /* pairs with tracer_wait_registered */
	tracer.turned = true;
}

static void wait_turn(uint32_t turn, uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	ky_call(SYS_futex, &tracer.turn, FUTEX_WAIT_PRIVATE, turn, &t, NULL, 0);
}

void tracer_wait_written(void)
{
	const struct tracer_conn *c = tracer.companion;
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC),
		 deadline = now + WRITTEN_MS * UINT64_C(1000000);

	__atomic_store_n(&tracer.ending, true, __ATOMIC_RELAXED);
	tracer_listener_wake();
	for (; now < deadline; now = ky_clock_ns(CLOCK_MONOTONIC)) {
		uint32_t turn = __atomic_load_n(&tracer.turn, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&c->flushed, __ATOMIC_RELAXED) ||
			__atomic_load_n(&c->socket.fd, __ATOMIC_RELAXED) < 0)
			return;
		wait_turn(turn, deadline - now);
	}
}

/* Last observation of a daemon for which a thread waits. */
struct sign {
	bool active; /* it has a session that is worth waiting for */
	uint64_t progress, heard;
	uint64_t ticks;	   /* its CPU time; 0: not read */
	uint64_t check_ns; /* time of the next check */
};

/*
 * Reads /proc/.../stat, proc(5). Returns whether the process or thread runs or is runnable, and the
 * ticks of its CPU time.
 */
static bool is_running(const char *parent, pid_t id, uint64_t *ret_ticks)
{
	char path[48], buf[512], state;
	unsigned long user, system;
	const char *p;

	if (!id)
		return false;
	snprintf(path, sizeof(path), "%s/%d/stat", parent, (int)id);
	ky_read_text(AT_FDCWD, path, buf, sizeof(buf));
	p = strrchr(buf, ')');
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state,
			  &user, &system) != 3)
		return false;
	*ret_ticks = (uint64_t)user + system + 1;
	return state == 'R';
}

/*
 * Returns true if there is no sign of life because others use the CPU: our own listener has not yet
 * connected, or it or the daemon is runnable without CPU time. (False if the daemon runs all the
 * time: then it hangs in a loop.)
 */
static bool is_starved(const struct tracer_conn *c, struct sign *s)
{
	uint64_t ticks;

	if (!__atomic_load_n(&c->tried, __ATOMIC_RELAXED) &&
		!__atomic_load_n(&c->retry_ns, __ATOMIC_RELAXED))
		return true;
	if (is_running("/proc/self/task", listener.tid, &ticks))
		return true;
	if (!is_running("/proc", __atomic_load_n(&c->daemon, __ATOMIC_RELAXED), &ticks))
		return false;
	if (s->ticks && ticks - s->ticks > ALIVE_TICKS)
		return false;
	s->ticks = ticks;
	return true;
}

static void look_for_sign(const struct tracer_conn *c, struct sign *s)
{
	s->active = tracer_conn_is_active(c, &s->progress);
	s->heard = c->heard;
	s->check_ns = ky_clock_ns(CLOCK_MONOTONIC) + ALIVE_MS * 1000000u;
}

/*
 * Returns true if the daemon has done anything since the last check; then it gets the same time
 * again.
 */
static bool is_alive(const struct tracer_conn *c, struct sign *s)
{
	struct sign before = *s;

	look_for_sign(c, s);
	if (!s->active)
		return false;
	return s->progress != before.progress || s->heard != before.heard || is_starved(c, s);
}

/*
 * *asked: the number of requests at the first call; 0 before. Takes the lock only while the daemon
 * has not answered: the listener may hold it when it has woken the thread.
 */
static bool has_answered(struct tracer_conn *c, uint32_t *asked)
{
	bool answered;

	if (*asked && (int32_t)(__atomic_load_n(&c->answered, __ATOMIC_ACQUIRE) - *asked) >= 0)
		return true;
	tracer_take_lock();
	if (tracer_listener_died())
		tracer_give_up();
	c->awaited = true;
	*asked = *asked ? *asked : c->asked;
	answered = tracer.off ||
		   (c->tried && (c->socket.fd < 0 || (int32_t)(c->answered - *asked) >= 0));
	tracer_give_lock();
	return answered;
}

/* Waits until one daemon has answered all requests so far. */
static void wait_conn(struct tracer_conn *c, struct sign *s, uint64_t deadline, bool forever)
{
	uint32_t asked = 0;

	for (;;) {
		uint32_t turn = __atomic_load_n(&tracer.turn, __ATOMIC_ACQUIRE);
		uint64_t t = ky_clock_ns(CLOCK_MONOTONIC);

		if (has_answered(c, &asked) || (!forever && t >= deadline))
			return;
		if (!forever && t >= s->check_ns && !is_alive(c, s))
			return;
		wait_turn(turn, forever ? 1000000000 : KY_MIN(deadline, s->check_ns) - t);
	}
}

void tracer_note_unheard(void)
{
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < TRACER_N_CONNS; i++) {
		uint64_t none = 0;

		__atomic_compare_exchange_n(&tracer.conns[i].unheard_ns, &none, now, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void tracer_wait_registered(void)
{
	uint64_t deadline = ky_clock_ns(CLOCK_MONOTONIC) +
			    (uint64_t)KY_MAX(tracer.timeout_ms, 0) * 1000000;
	struct sign signs[TRACER_N_CONNS] = {0};

	/*
	 * Under a filter the application's threads call nothing that loading an object does not
	 * call.
	 */
	for (uint32_t i = 0; i < TRACER_N_CONNS && tracer.timeout_ms && !tracer.filtered; i++)
		look_for_sign(&tracer.conns[i], &signs[i]);
	for (uint32_t i = 0; i < TRACER_N_CONNS; i++)
		if (signs[i].active)
			wait_conn(&tracer.conns[i], &signs[i], deadline, tracer.timeout_ms < 0);
	tracer_note_unheard();
}
