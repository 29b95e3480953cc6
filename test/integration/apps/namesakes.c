/* SPDX-License-Identifier: MIT */
/*
 * A program with functions that have names of the C library's, but another purpose: a call of one
 * of them ends the program. It forks, and records 1,000 events in each process.
 */
#include <stdlib.h>
#include <sys/types.h>

#include <kymo/tracepoint.h>

void end(void);
void end(void)
{
	abort();
}

#define NAMESAKE(name)                                                                             \
	__attribute__((visibility("default"), alias("end"))) void my_##name(void) __asm__(#name)

NAMESAKE(access);
NAMESAKE(close);
NAMESAKE(connect);
NAMESAKE(execve);
NAMESAKE(fcntl);
NAMESAKE(fcntl64);
NAMESAKE(fstat);
NAMESAKE(fstat64);
NAMESAKE(getpid);
NAMESAKE(getresuid);
NAMESAKE(getrlimit);
NAMESAKE(getrlimit64);
NAMESAKE(getsockopt);
NAMESAKE(ioctl);
NAMESAKE(kill);
NAMESAKE(nanosleep);
NAMESAKE(open);
NAMESAKE(open64);
NAMESAKE(openat);
NAMESAKE(openat64);
NAMESAKE(poll);
NAMESAKE(prctl);
NAMESAKE(pread);
NAMESAKE(pread64);
NAMESAKE(read);
NAMESAKE(readlink);
NAMESAKE(recvmsg);
NAMESAKE(sched_yield);
NAMESAKE(send);
NAMESAKE(shutdown);
NAMESAKE(socket);
NAMESAKE(stat);
NAMESAKE(stat64);
NAMESAKE(syscall);
NAMESAKE(waitpid);
NAMESAKE(write);

pid_t fork(void);
pid_t wait(int *status);

int main(void)
{
	pid_t child = fork();
	int status = 1;

	for (int i = 0; i < 1000; i++)
		kymo_event(namesakes, tick, kymo_i32(n, i));
	if (!child)
		return 0;
	wait(&status);
	return status ? 3 : 0;
}
