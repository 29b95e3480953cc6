/* SPDX-License-Identifier: MIT */
/*
 * Executes the lines of its input, and replies "ok" to each:
 *   set KEY VALUE     a door with this number; its state has a text, too
 *   end KEY
 *   name TEXT N       a person of this name
 *   leave TEXT
 *   long N            a text of that length, with key 1
 *   many N            doors 0 .. N - 1
 *   threads N, join   N threads, each of which opens a door of its own further and further, from 0,
 *                     until they are joined
 *   fork              passes all following lines to the child, until its "quit"
 */
#include <kymo/state.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void set(int32_t key, int32_t value)
{
	kymo_state_event(house, door, kymo_i32(door, key), kymo_i32(open, value),
		kymo_string(
			text, value % 2 ? "a text that is longer than sixteen bytes" : "short"));
}

static void tell_long(int n)
{
	char *text = (char *)malloc((size_t)n + 1);

	memset(text, 'x', (size_t)n);
	text[n] = '\0';
	kymo_state_event(house, long_text, kymo_u8(key, 1), kymo_string(text, text));
	free(text);
}

static pthread_t threads[64];
static int n_threads, is_over;

/*
 * Sets one more value after the end was requested: a session that began before "join" has at least
 * one value of each thread.
 */
static void *work(void *arg)
{
	bool last = false;

	for (int i = 0; !last; i++) {
		last = __atomic_load_n(&is_over, __ATOMIC_SEQ_CST);
		set((int32_t)(intptr_t)arg, i);
		usleep(100);
	}
	return NULL;
}

static void run_threads(int n)
{
	for (n_threads = 0; n_threads < n; n_threads++)
		pthread_create(&threads[n_threads], NULL, work, (void *)(intptr_t)n_threads);
}

static void join_threads(void)
{
	__atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
	while (n_threads)
		pthread_join(threads[--n_threads], NULL);
}

static int is_child;

static void split(void)
{
	pid_t pid = fork();

	is_child = !pid;
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void quit(int status)
{
	if (is_child)
		_exit(status); /* a sanitizer's check at exit looks for the parent's threads */
	exit(status);
}

static void obey(const char *line)
{
	char text[256];
	int a, b;

	if (sscanf(line, "set %d %d", &a, &b) == 2)
		set(a, b);
	else if (sscanf(line, "end %d", &a) == 1)
		kymo_state_end(house, door, kymo_i32(door, a));
	else if (sscanf(line, "name %255s %d", text, &a) == 2)
		kymo_state_event(house, person, kymo_string(name, text), kymo_i32(age, a));
	else if (sscanf(line, "leave %255s", text) == 1)
		kymo_state_end(house, person, kymo_string(name, text));
	else if (sscanf(line, "long %d", &a) == 1)
		tell_long(a);
	else if (sscanf(line, "threads %d", &a) == 1)
		run_threads(a);
	else if (!strcmp(line, "join\n"))
		join_threads();
	else if (!strcmp(line, "fork\n"))
		split();
	else if (sscanf(line, "many %d", &a) == 1)
		for (b = 0; b < a; b++)
			set(b, b);
	else
		quit(strcmp(line, "quit\n") != 0);
}

int main(void)
{
	char line[512];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		puts("ok");
		fflush(stdout);
	}
	return 0;
}
