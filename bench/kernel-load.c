/* SPDX-License-Identifier: MIT */
/*
 * kernel-load N CPU: a load for tracers of the kernel. N times: opens, reads and closes a file, and
 * exchanges a byte with a child on the same CPU. That is 14 entries and exits of system calls, two
 * switches and two wake-ups.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int answer(int from, int to)
{
	char c;

	while (read(from, &c, 1) == 1)
		if (write(to, &c, 1) != 1)
			return 1;
	return 0;
}

static int ask(int to, int from)
{
	char c = 0, buf[64];
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buf, sizeof(buf)) < 0 || close(fd) < 0)
		return 1;
	return write(to, &c, 1) != 1 || read(from, &c, 1) != 1;
}

int main(int argc, char **argv)
{
	int there[2], back[2], failed = 0;
	cpu_set_t set;

	if (argc != 3 || pipe(there) < 0 || pipe(back) < 0)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[2]), &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (!fork()) {
		close(there[1]);
		_exit(answer(there[0], back[1]));
	}
	close(there[0]);
	for (long i = atol(argv[1]); i > 0 && !failed; i--)
		failed = ask(there[1], back[0]);
	close(there[1]);
	wait(NULL);
	return failed;
}
