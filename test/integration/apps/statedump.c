/* SPDX-License-Identifier: MIT */
/*
 * Executes the lines of its input, and replies to each with a line:
 *   register, unregister    its state dump, of two items; replies the result
 *   emit N                  emits N other events
 *   runs                    replies how often its state dump ran
 *   hold, release           from "hold" on, the state dump waits in its middle; "release" lets it
 *                           continue
 *   linker                  after "hold": another thread holds the dynamic linker's lock, until
 *                           "release"
 *   load PATH, unload       a library, which may register a state dump of its own
 *   fork                    passes all following lines to the child, until its "quit"
 * It prints "ready" before it reads its first line. It executes its arguments before, if there are
 * any.
 */
#include <dlfcn.h>
#include <kymo/statedump.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static int n_runs, held, in_linker;
static void *library;

static void tell(void *data)
{
	int run = __atomic_add_fetch(&n_runs, 1, __ATOMIC_SEQ_CST);

	kymo_event(state, item, kymo_i32(run, run), kymo_i32(n, 0),
		kymo_string(name, (const char *)data));
	while (__atomic_load_n(&held, __ATOMIC_SEQ_CST))
		usleep(1000);
	kymo_event(state, item, kymo_i32(run, run), kymo_i32(n, 1),
		kymo_string(name, (const char *)data));
	kymo_event(state, number, kymo_i32(run, run));
}

static struct kymo_statedump dump = {sizeof(dump), 0, tell, (void *)(uintptr_t) "main"};

static int emit(int n)
{
	for (int i = 0; i < n; i++) {
		kymo_event(work, word, kymo_i32(i, i));
		kymo_event(work, text, kymo_i32(i, i),
			kymo_string(s, "some text that is longer than a word"));
	}
	return n;
}

static int stay(struct dl_phdr_info *info, size_t size, void *data)
{
	__atomic_store_n(&in_linker, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&held, __ATOMIC_SEQ_CST))
		usleep(1000);
	return 1;
}

static void *enter_linker(void *arg)
{
	dl_iterate_phdr(stay, NULL);
	return arg;
}

static int hold_linker(void)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, enter_linker, NULL);

	while (!r && !__atomic_load_n(&in_linker, __ATOMIC_SEQ_CST))
		usleep(1000);
	return r;
}

static int split(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid > 0) {
		waitpid(pid, &status, 0);
		return status;
	}
	return (int)pid;
}

static int obey(const char *line)
{
	if (!strcmp(line, "register"))
		return kymo_statedump_register(&dump);
	if (!strcmp(line, "unregister"))
		kymo_statedump_unregister(&dump);
	else if (!strncmp(line, "emit ", 5))
		return emit(atoi(line + 5));
	else if (!strcmp(line, "runs"))
		return __atomic_load_n(&n_runs, __ATOMIC_SEQ_CST);
	else if (!strcmp(line, "hold") || !strcmp(line, "release"))
		__atomic_store_n(&held, *line == 'h', __ATOMIC_SEQ_CST);
	else if (!strcmp(line, "linker"))
		return hold_linker();
	else if (!strncmp(line, "load ", 5))
		return (library = dlopen(line + 5, RTLD_NOW)) ? 0 : -1;
	else if (!strcmp(line, "unload"))
		return dlclose(library);
	else if (!strcmp(line, "fork"))
		return split();
	else
		exit(strcmp(line, "quit") ? 2 : 0);
	return 0;
}

int main(int argc, char **argv)
{
	char line[4096];

	for (int i = 1; i < argc; i++)
		obey(argv[i]);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		printf("%d\n", obey(line));
		fflush(stdout);
	}
	return 0;
}
