/* SPDX-License-Identifier: MIT */
/*
 * loads PREFIX THREADS ROUNDS [-w | -c DIR]: in each round, thread T loads PREFIXT.so (a copy of
 * loads-provider.c), calls it and unloads it. Prints its resident memory in KiB after a tenth of
 * the rounds and at the end. -w: prints "ready" after the first round, and waits for a line before
 * each further round. -c: after the first round, changes the root directory to DIR, which has the
 * libraries under their last names. The program itself has no event.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *prefix, *jail;
static int n_threads, n_rounds, waits;
static pthread_barrier_t barrier;
static long warm_kib;

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0;

	if (!f && jail)
		return 0;
	if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
		exit(3);
	fclose(f);
	return resident * 4;
}

static void wait_line(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static void load_once(const char *path, int thread, int n)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*provide)(int, int) = library ? (void (*)(int, int))dlsym(library, "provide") : NULL;

	if (!provide) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	provide(thread, n);
	dlclose(library);
	if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {
		fprintf(stderr, "%s: is still there\n", path);
		exit(3);
	}
}

static void enter_jail(void)
{
	if (chroot(jail) < 0 || chdir("/") < 0) {
		perror(jail);
		exit(3);
	}
	prefix = strrchr(prefix, '/');
}

static void *load(void *arg)
{
	int thread = (int)(long)arg;
	char path[4096];

	for (int n = 0; n < n_rounds; n++) {
		if (n == 1 && jail)
			enter_jail();
		snprintf(path, sizeof(path), "%s%d.so", prefix, thread);
		if (n && waits)
			wait_line();
		load_once(path, thread, n);
		if (n == n_rounds / 10 &&
			pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			warm_kib = resident_kib();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];

	if (argc < 4)
		return 2;
	prefix = argv[1];
	n_threads = atoi(argv[2]);
	n_rounds = atoi(argv[3]);
	waits = argc == 5;
	jail = argc > 5 ? argv[5] : NULL;
	pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
	for (int i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, load, (void *)(long)i))
			return 3;
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %ld\n", warm_kib, resident_kib());
	return 0;
}
