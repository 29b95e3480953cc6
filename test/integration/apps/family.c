/* SPDX-License-Identifier: MIT */
/*
 * Processes that create processes in every possible way, while threads and signal handlers record.
 *
 *   family storm THREADS FORKS     threads fork, FORKS times in all, children of all
 *                                  kinds (see KINDS)
 *   family exec ROUNDS             executes itself ROUNDS times
 *   family handler FORKS           the handler of a timer's signal forks, and so does main
 *   family linker                  forks while a thread holds the dynamic linker's lock
 *   family raw-clone               a raw clone child exits through exit()
 *   family vfork ROUNDS            children of vfork() and clone(CLONE_VM) record, which POSIX
 *                                  forbids, and execute
 *   family setns                   enters another mount namespace
 *   family chroot DIRECTORY        continues in that root directory
 *
 * Each event names its process: family:event { pid, n }. Prints the number of events that a trace
 * must have.
 */
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define EACH 5 /* number of events of a child */

extern char **environ;

/*
 * All processes share it, except those that have executed a program. Those print nothing, and each
 * is known to record EACH events.
 */
static struct shared {
	unsigned long events, failures;
} * shared;

static char *self; /* the path of this program */

static void record(int n)
{
	kymo_event(family, event, kymo_i32(pid, getpid()), kymo_i32(n, n));
	__atomic_fetch_add(&shared->events, 1, __ATOMIC_RELAXED);
}

static void record_each(void)
{
	for (int i = 0; i < EACH; i++)
		record(i);
}

static void on_timer(int sig)
{
	(void)sig;
	record(-1);
}

static void start_timer(void (*handler)(int), int us)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval every = {.it_interval.tv_usec = us, .it_value.tv_usec = us};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void stop_timer(void)
{
	struct itimerval never = {0};

	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
}

static void expect(int ok)
{
	if (!ok)
		__atomic_fetch_add(&shared->failures, 1, __ATOMIC_RELAXED);
}

static void reap(pid_t pid)
{
	int status = -1;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		;
	expect(status == 0);
}

/* Runs in a child after fork() returned 0: records, and exits in one of the ways. */
static void end_child(void)
{
	stop_timer();
	_exit(0);
}

static void child_records(void)
{
	pid_t pid = fork();

	if (!pid) {
		start_timer(on_timer, 1000); /* a child does not inherit timers */
		record_each();
		end_child();
	}
	reap(pid);
}

static void child_executes_other(void)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	reap(pid);
}

static void grandchild_records(void)
{
	pid_t pid = fork();

	if (!pid) {
		record_each();
		child_records();
		record_each();
		end_child();
	}
	reap(pid);
}

/*
 * Becomes a daemon as servers do: with its own session, no descriptors, and another directory. The
 * parent learns of its exit from a lock in shared memory.
 */
static void becomes_daemon(void)
{
	int *ended = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();

	if (!pid) {
		if (daemon(0, 0))
			_exit(1);
		for (int fd = 0; fd < 64; fd++)
			close(fd);
		record_each();
		__atomic_store_n(ended, 1, __ATOMIC_RELEASE);
		_exit(0);
	}
	reap(pid);
	while (!__atomic_load_n(ended, __ATOMIC_ACQUIRE))
		usleep(200);
	munmap(ended, 4096);
}

static void executes_itself(void)
{
	char *argv[] = {self, (char *)"once", NULL};
	pid_t pid = fork();

	if (!pid) {
		record_each();
		execv(self, argv);
		_exit(1);
	}
	reap(pid);
	__atomic_fetch_add(&shared->events, EACH, __ATOMIC_RELAXED);
}

static void spawns(void)
{
	char *argv[] = {self, (char *)"once", NULL};
	pid_t pid = -1;

	expect(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
	reap(pid);
	__atomic_fetch_add(&shared->events, EACH, __ATOMIC_RELAXED);
}

static void calls_shell(void)
{
	char command[4096], line[16] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "exec '%s' once", self);
	expect(system(command) == 0);
	pipe = popen("echo hello", "r");
	expect(pipe && fgets(line, sizeof(line), pipe) && !strcmp(line, "hello\n"));
	expect(pipe && pclose(pipe) == 0);
	__atomic_fetch_add(&shared->events, EACH, __ATOMIC_RELAXED);
}

/* A child with an additional thread, which still records while the process exits. */
static void *record_in_thread(void *unused)
{
	record_each();
	return unused;
}

static void child_has_threads(void)
{
	pid_t pid = fork();

	if (!pid) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, record_in_thread, NULL))
			_exit(1);
		record_each();
		pthread_join(thread, NULL);
		_exit(0);
	}
	reap(pid);
}

static void (*const KINDS[])(void) = {child_records, child_executes_other, grandchild_records,
	becomes_daemon, executes_itself, spawns, calls_shell, child_has_threads};
#define N_KINDS (int)(sizeof(KINDS) / sizeof(KINDS[0]))

static int n_forks, next_fork;

static void *storm_thread(void *unused)
{
	int i;

	while ((i = __atomic_fetch_add(&next_fork, 1, __ATOMIC_RELAXED)) < n_forks) {
		record(i);
		KINDS[i % N_KINDS]();
	}
	return unused;
}

static int storm(int n_threads, int n)
{
	pthread_t threads[64];

	n_forks = n;
	start_timer(on_timer, 2000);
	for (int i = 0; i < n_threads; i++)
		expect(pthread_create(&threads[i], NULL, storm_thread, NULL) == 0);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	stop_timer();
	return 0;
}

static int exec_again(int rounds)
{
	char n[16];

	for (int i = 0; i < EACH; i++)
		kymo_event(family, event, kymo_i32(pid, getpid()), kymo_i32(n, rounds * EACH + i));
	if (rounds <= 1)
		return 0;
	snprintf(n, sizeof(n), "%d", rounds - 1);
	execl(self, self, "exec", n, (char *)NULL);
	return 1;
}

static int handler_forks;

static void fork_in_handler(int sig)
{
	pid_t pid;

	(void)sig;
	if (handler_forks >= n_forks)
		return;
	handler_forks++;
	record(-1);
	pid = fork();
	if (!pid) {
		record_each();
		_exit(0);
	}
	reap(pid);
}

static int handler(int n)
{
	n_forks = n;
	start_timer(fork_in_handler, 50);
	while (__atomic_load_n(&handler_forks, __ATOMIC_RELAXED) < n)
		child_records();
	stop_timer();
	return 0;
}

static int in_linker, leave_linker;

static int stay(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)info;
	(void)size;
	(void)unused;
	__atomic_store_n(&in_linker, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&leave_linker, __ATOMIC_ACQUIRE))
		usleep(200);
	return 1;
}

static void *hold_linker(void *unused)
{
	dl_iterate_phdr(stay, NULL);
	return unused;
}

static int linker(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, hold_linker, NULL);
	while (!__atomic_load_n(&in_linker, __ATOMIC_ACQUIRE))
		usleep(200);
	child_records();
	__atomic_store_n(&leave_linker, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return 0;
}

static int at_once;

static void *record_many(void *unused)
{
	__atomic_fetch_add(&at_once, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&at_once, __ATOMIC_RELAXED) < 2)
		sched_yield();
	for (int i = 0; i < 50000; i++)
		record(i);
	return unused;
}

static int raw_clone_child(void)
{
	pthread_t thread;
	pid_t pid;

	record_each();
	fflush(stdout);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		kymo_event(family, event, kymo_i32(pid, getpid()),
			kymo_i32(n, 0)); /* is not recorded */
		exit(0);
	}
	reap(pid);
	pthread_create(&thread, NULL, record_many, NULL);
	record_many(NULL);
	pthread_join(thread, NULL);
	return 0;
}

static int vfork_one(void)
{
	pid_t pid = vfork();

	if (!pid) {
		kymo_event(family, vforked, kymo_i32(n, 0));
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	return pid;
}

static int in_parents_memory(void *unused)
{
	(void)unused;
	kymo_event(family, vforked, kymo_i32(n, 1));
	_exit(0);
}

static int vforks(int rounds)
{
	static char stack[65536] __attribute__((aligned(16)));

	for (int i = 0; i < rounds; i++) {
		record(i);
		reap(vfork_one());
		reap(clone(in_parents_memory, stack + sizeof(stack),
			CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	}
	return 0;
}

/*
 * Returns the mount namespace of a child. The child waits in it until it is notified through the
 * pipe.
 */
static int namespace_of_child(pid_t *ret_child, int *ret_end)
{
	char path[64], byte = 0;
	int ready[2], end[2];

	if (pipe(ready) || pipe(end))
		return -1;
	*ret_child = fork();
	if (!*ret_child) {
		close(end[1]);
		_exit(unshare(CLONE_NEWNS) || write(ready[1], &byte, 1) != 1 ||
			read(end[0], &byte, 1));
	}
	close(ready[1]);
	close(end[0]);
	*ret_end = end[1];
	if (read(ready[0], &byte, 1) != 1)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)*ret_child);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The kernel allows it only to a thread that does not share its root and current directory. */
static int enter_namespace(void)
{
	pid_t child = -1;
	int end = -1, r;

	record_each();
	r = setns(namespace_of_child(&child, &end), CLONE_NEWNS);
	if (r)
		perror("setns");
	record_each();
	close(end);
	reap(child);
	return r != 0;
}

static int confine(const char *directory)
{
	record_each();
	if (chroot(directory) || chdir("/")) {
		perror(directory);
		return 1;
	}
	child_records();
	record_each();
	return 0;
}

static int run(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(what, "storm") && argc == 4)
		return storm(n > 64 ? 64 : n, atoi(argv[3]));
	if (!strcmp(what, "handler"))
		return handler(n);
	if (!strcmp(what, "linker"))
		return linker();
	if (!strcmp(what, "raw-clone"))
		return raw_clone_child();
	if (!strcmp(what, "vfork"))
		return vforks(n);
	if (!strcmp(what, "setns"))
		return enter_namespace();
	return !strcmp(what, "chroot") && argc == 3 ? confine(argv[2]) : 2;
}

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int r;

	path[len < 0 ? 0 : len] = '\0';
	self = path;
	if (argc == 3 && !strcmp(argv[1], "exec"))
		return exec_again(atoi(argv[2]));
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 3;
	if (argc == 2 && !strcmp(argv[1], "once")) {
		record_each();
		return 0;
	}
	r = run(argc, argv);
	printf("%lu\n", shared->events);
	return r ? r : shared->failures != 0;
}
