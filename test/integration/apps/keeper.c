/* SPDX-License-Identifier: MIT */
/*
 * keeper UID [give-up|at-once|without-main]: root's program of one thread, which records. It
 * changes its user and groups with capabilities that it has kept or given up before. It prints the
 * result of each step, and whether all of its threads have the same capabilities. without-main:
 * another thread changes the user after main has ended.
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <kymo/tracepoint.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void say(const char *step, long result)
{
	kymo_event(keeper, step, kymo_string(step, step));
	printf("%s: %s\n", step, result ? strerror(errno) : "done");
	fflush(stdout);
}

static int get(pid_t thread, struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, thread};

	return (int)syscall(SYS_capget, &head, data);
}

/* Gives up all capabilities but those in `kept`, and makes the others effective. */
static long keep(uint32_t kept)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	get(0, data);
	data[0].permitted &= kept;
	data[0].effective = data[0].permitted;
	data[0].inheritable = 0;
	data[1] = (struct __user_cap_data_struct){0};
	return syscall(SYS_capset, &head, data);
}

static int main_has_ended;

static int are_equal(void)
{
	struct __user_cap_data_struct ours[2], theirs[2];
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int equal = d != NULL;

	get(0, ours);
	while (equal && (e = readdir(d)))
		if (atoi(e->d_name) && !(main_has_ended && atoi(e->d_name) == getpid()) &&
			!get(atoi(e->d_name), theirs))
			equal = !memcmp(ours, theirs, sizeof(ours));
	if (d)
		closedir(d);
	return equal;
}

/* Other threads follow main at once, but may have to wait for a processor. */
static void compare(void)
{
	const struct timespec ms = {0, 1000000};
	int i = 0;

	while (!are_equal() && i++ < 10000)
		nanosleep(&ms, NULL);
	puts(are_equal() ? "all threads have the same" : "a thread has others");
}

static void wait_for_end_of_main(void)
{
	const struct timespec ms = {0, 1000000};
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	while (!main_has_ended) {
		nanosleep(&ms, NULL);
		f = fopen(path, "r");
		if (!f || !fgets(line, sizeof(line), f))
			abort();
		main_has_ended = strstr(line, ") Z ") != NULL;
		fclose(f);
	}
}

static void *change_without_main(void *user)
{
	uid_t uid = *(uid_t *)user;

	wait_for_end_of_main();
	say("change user", setresuid(uid, uid, uid));
	compare();
	say("become root", setuid(0));
	compare();
	fflush(stdout);
	_exit(0); /* leak detectors do not know what a main that has ended refers to */
}

int main(int argc, char **argv)
{
	const uint32_t groups = 1u << CAP_SETGID, user = 1u << CAP_SETUID;
	const int at_once = argc > 2 && !strcmp(argv[2], "at-once");
	static uid_t uid;
	pthread_t thread;

	uid = (uid_t)atoi(argv[1]);
	if (argc > 2 && !strcmp(argv[2], "without-main")) {
		say("begin", 0);
		if (pthread_create(&thread, NULL, change_without_main, &uid))
			return 1;
		pthread_exit(NULL);
	}
	if (argc > 2 && !at_once) {
		say("give up groups", keep(~groups));
		say("set groups", setgroups(0, NULL));
		say("change user", setresuid(uid, uid, uid));
		compare();
	} else {
		say("keep", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
		say("change user", setresuid(uid, uid, uid));
		if (!at_once)
			compare();
		say("keep some", keep(groups | user));
		say("set groups", setgroups(0, NULL));
		compare();
		say("change user again", setresuid(uid + 1, uid + 1, uid + 1));
		compare();
		say("give up all", keep(0));
	}
	say("become root", setuid(0));
	compare();
	return 0;
}
