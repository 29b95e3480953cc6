/* SPDX-License-Identifier: MIT */
/*
 * A process whose main thread ends alone ends with its last thread. The tracer's threads must not
 * keep it. When main leaves by pthread_exit(), one more thread, kymo-last, waits until no others
 * than the tracer's are left, ends these, and then itself. The C library calls exit() in it: it has
 * the program's descriptors, which the listener has not, and main's signal mask.
 *
 * If main calls SYS_exit, or a system call filter kills it alone, the C library calls nothing: the
 * listener is the last, and ends as main did, because the kernel reports how the last one ended.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/small-file.h"
#include "base/sys.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"

#define NAP_MIN_NS 1000000
#define NAP_MAX_NS 50000000
/* Shortest naps, for a listener that waits for a file system, or whose end an emulator hides. */
#define PATIENCE 1000

/* The thread that loaded the library, usually main. A forked child's is its only thread. */
static struct {
	pthread_key_t end;     /* has a value in it */
	bool called_exit;      /* pthread_exit(); */
	bool is_awaited;       /* and kymo-last waits for the other threads */
	bool alone;	       /* or a filter forbids that: the listener ends when main has */
	bool died, outlived;   /* it has ended, and others lived then, as the listener has seen */
	pthread_mutex_t alive; /* robust; it holds it as long as it lives */
} loader KY_WRITTEN_EARLY;

struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

bool tracer_count_threads(unsigned *ret_ours, unsigned *ret_others)
{
	char buf[4096] __attribute__((aligned(8)));
	int fd = ky_sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t self = ky_thread_number();
	bool saw_main = false;
	long n = -1;

	*ret_ours = *ret_others = 0;
	while (fd >= 0 && (n = ky_call(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(buf + at);
			pid_t id = (pid_t)strtol(e->name, NULL, 10);

			at += e->len;
			saw_main |= id == ky_process_number();
			if (!id || id == self || id == ky_process_number())
				continue;
			if (tracer_listener_is(id) || tracer_statedump_is(id))
				++*ret_ours;
			else
				++*ret_others;
		}
	ky_close(fd);
	/*
	 * The kernel's list begins with main, and ends early if the thread that it lists last ends
	 * meanwhile. Without main, it is that of a filter, which lets calls succeed that are not
	 * made, or has the numbers of another PID namespace, to which /proc belongs. In an
	 * emulator, it has threads of the emulator, too.
	 */
	return n == 0 && saw_main && !tracer_is_emulated();
}

static void end_ours(void)
{
	if (tracer.companion)
		tracer_wait_written();
	tracer_statedump_end();
	tracer_listener_end();
}

/*
 * For a program whose other threads nobody can wait for: without /proc, with that of another PID
 * namespace, or without a descriptor or a thread left. The tracer's threads end before the
 * program's, so the C library calls exit() in the last of these. Returns false behind a filter of
 * the program: it may forbid the C library's calls, so the listener ends without them.
 */
static bool end_ours_first(void)
{
	const struct timespec nap = {.tv_nsec = NAP_MIN_NS};

	if (tracer.filtered || (!tracer.filtered_early && tracer_is_filtered()))
		return false;
	end_ours();
	for (int i = 0; i < PATIENCE && tracer_listener_exists(); i++)
		ky_sys_nanosleep(&nap);
	return true;
}

static void *wait_for_others(void *arg)
{
	struct timespec nap = {.tv_nsec = NAP_MIN_NS};
	unsigned ours, others;
	bool sees;

	ky_sys_prctl(PR_SET_NAME, "kymo-last");
	tracer_follow_main();
	while ((sees = tracer_count_threads(&ours, &others)) && ours + others) {
		if (!others) {
			end_ours();
			nap.tv_nsec = NAP_MIN_NS;
		}
		ky_sys_nanosleep(&nap);
		nap.tv_nsec = KY_MIN(nap.tv_nsec * 2, NAP_MAX_NS);
	}
	loader.alone = !sees && !end_ours_first();
	return arg;
}

static void on_main_end(void *unused)
{
	pthread_attr_t attr;
	pthread_t thread;
	pid_t self;

	(void)unused;
	if (tracer.off || tracer_is_raw_child())
		return;
	if (!tracer.filtered && !tracer.filtered_early)
		tracer.filtered = tracer_has_become_filtered();
	loader.alone = tracer.filtered && tracer_filter_kills();
	if (!loader.alone) {
		self = ky_thread_number();
		loader.alone = self <= 0 || ky_process_number() <= 0; /* a filter makes them fail */
		if (!loader.alone && ky_process_number() != self)
			return;
	}
	loader.called_exit = true;
	if (loader.alone)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	loader.is_awaited = true;
	loader.is_awaited = pthread_create(&thread, &attr, wait_for_others, NULL) == 0 ||
			    end_ours_first();
	pthread_attr_destroy(&attr);
}

void tracer_last_init(void)
{
	/* Other keys would make pthread_setspecific allocate. */
	if (pthread_key_create(&loader.end, on_main_end) == 0 && loader.end < 32)
		tracer_last_set_main();
}

void tracer_last_set_main(void)
{
	pthread_mutexattr_t attr;

	pthread_setspecific(loader.end, &tracer);
	loader.called_exit = loader.is_awaited = loader.alone = false;
	loader.died = loader.outlived = false;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&loader.alive, &attr);
	pthread_mutexattr_destroy(&attr);
	/*
	 * The kernel releases it. It is free. To a thread sanitizer, a lock that waits would be an
	 * inversion of the order: the caller has the tracer's lock, which main takes again later,
	 * when it has this one.
	 */
	pthread_mutex_trylock(&loader.alive);
}

/* Reads main's state, proc(5), and the status that wait() would return for it. */
static bool read_main(char *ret_state, int *ret_status)
{
	enum { STATUS = 49 }; /* fields between the two */
	char path[48], buf[1024], *p;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)ky_process_number());
	ky_read_text(AT_FDCWD, path, buf, sizeof(buf));
	p = strrchr(buf, ')');
	if (!p || sscanf(p + 1, " %c", ret_state) != 1)
		return false;
	p += 2;
	for (int i = 0; i < STATUS && p; i++)
		p = strchr(p + 1, ' ');
	*ret_status = p ? atoi(p) : 0;
	return true;
}

static bool has_main_ended(void)
{
	char state;
	int status;

	return loader.called_exit || !read_main(&state, &status) || state == 'Z' || state == 'X';
}

static bool is_nobody_left(void)
{
	unsigned ours, others;

	if (loader.called_exit && (loader.alone || tracer_may_be_killed()))
		return true; /* other living threads do not need the listener */
	if (!tracer_count_threads(&ours, &others)) {
		loader.outlived = true; /* for all we know */
		return true;
	}
	loader.outlived |= others > 0;
	if (ours && !others)
		tracer_statedump_end();
	return ours + others == 0;
}

enum tracer_main tracer_last_look(void)
{
	if (tracer_has_died_with(&loader.alive)) {
		loader.died = true;
		if (!loader.called_exit)
			return TRACER_MAIN_ENDS; /* the kernel has not finished */
	}
	if (!loader.died || (loader.is_awaited && !loader.alone) || !has_main_ended())
		return TRACER_MAIN_LIVES;
	return is_nobody_left() ? TRACER_MAIN_WAS_LAST : TRACER_MAIN_ENDS;
}

_Noreturn void tracer_last_end_as_main(void)
{
	struct sigaction sa;
	int status = 0;
	char state;
	sigset_t none;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = SIG_DFL;
	sigemptyset(&none);
	if (!loader.outlived && !loader.called_exit && read_main(&state, &status) &&
		(status & 0x7f)) {
		sigaction(status & 0x7f, &sa, NULL);
		ky_call(SYS_tgkill, ky_process_number(), ky_thread_number(), status & 0x7f);
		pthread_sigmask(SIG_SETMASK, &none, NULL);
	}
	for (;;)
		ky_call(SYS_exit, status >> 8 & 0xff);
}
