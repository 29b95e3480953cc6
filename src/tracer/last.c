/* SPDX-License-Identifier: MIT */
/*
 * A process whose main thread leaves by pthread_exit() ends with its last thread. The tracer's
 * threads must not keep it. When main ends so, one more thread, kymo-last, waits until no others
 * than the tracer's are left, ends these, and then itself. The C library calls exit() in it: it has
 * the program's descriptors, which the listener has not, and main's signal mask.
 */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"

#define NAP_MIN_NS 1000000
#define NAP_MAX_NS 50000000

static KY_WRITTEN_EARLY pthread_key_t main_end; /* has a value in the main thread */

struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/*
 * Counts the tracer's threads without the calling one, and the program's without main. Returns
 * false if /proc does not show them.
 */
static bool count_threads(unsigned *ret_ours, unsigned *ret_others)
{
	char buf[4096] __attribute__((aligned(8)));
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t self = (pid_t)syscall(SYS_gettid);
	long n = -1;

	*ret_ours = *ret_others = 0;
	while (fd >= 0 && (n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(buf + at);
			pid_t id = (pid_t)strtol(e->name, NULL, 10);

			at += e->len;
			if (!id || id == self || id == getpid())
				continue;
			if (tracer_listener_is(id) || tracer_statedump_is(id))
				++*ret_ours;
			else
				++*ret_others;
		}
	ky_close(fd);
	return n == 0;
}

static void *wait_for_others(void *arg)
{
	struct timespec nap = {.tv_nsec = NAP_MIN_NS};
	unsigned ours, others;

	prctl(PR_SET_NAME, "kymo-last");
	while (count_threads(&ours, &others) && ours + others) {
		if (!others) {
			if (tracer.companion)
				tracer_wait_written();
			tracer_statedump_end();
			tracer_listener_end();
			nap.tv_nsec = NAP_MIN_NS;
		}
		nanosleep(&nap, NULL);
		nap.tv_nsec = KY_MIN(nap.tv_nsec * 2, NAP_MAX_NS);
	}
	return arg;
}

static void on_main_end(void *unused)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)unused;
	if (tracer.off || tracer_is_raw_child() || getpid() != (pid_t)syscall(SYS_gettid))
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_create(&thread, &attr, wait_for_others, NULL);
	pthread_attr_destroy(&attr);
}

void tracer_last_init(void)
{
	/* Other keys would make pthread_setspecific allocate. */
	if (pthread_key_create(&main_end, on_main_end) == 0 && main_end < 32)
		tracer_last_set_main();
}

void tracer_last_set_main(void)
{
	pthread_setspecific(main_end, &tracer);
}
