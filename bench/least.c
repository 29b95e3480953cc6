/* SPDX-License-Identifier: MIT */
/*
 * The least that a tracer does when a program starts, without any logic: a library that a
 * constructor of tiny-least loads. It starts a thread, which would notice a daemon. With
 * BENCH_LEAST (a socket of least-server), the thread sends a message, maps the ring and the page
 * that it gets with the answer, and a table; main waits for that.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "least.h"

void least_start(void);

static uint32_t ready;

static int enter(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strncpy(to.sun_path, path, sizeof(to.sun_path) - 1);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		_exit(1);
	return fd;
}

static void exchange(int fd, int *ret_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	char buf[LEAST_HELLO];
	struct iovec iov = {buf, LEAST_REPLY};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};

	memset(buf, 0, sizeof(buf));
	if (send(fd, buf, sizeof(buf), MSG_NOSIGNAL) != sizeof(buf) ||
		recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != LEAST_REPLY)
		_exit(1);
	if (CMSG_FIRSTHDR(&msg))
		memcpy(ret_fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), 2 * sizeof(int));
}

static void *listen_to_server(void *path)
{
	int fd, fds[2] = {-1, -1};

	if (path) {
		fd = enter(path);
		exchange(fd, fds);
		if (mmap(NULL, LEAST_RING, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0) ==
				MAP_FAILED ||
			mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[1], 0) == MAP_FAILED ||
			mmap(NULL, LEAST_TABLE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
			_exit(1);
		close(fds[0]);
		close(fds[1]);
		__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &ready, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	}
	for (;;)
		poll(NULL, 0, -1);
	return NULL;
}

__attribute__((visibility("default"))) void least_start(void)
{
	char *path = getenv("BENCH_LEAST");
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 131072);
	if (pthread_create(&thread, &attr, listen_to_server, path))
		_exit(1);
	pthread_attr_destroy(&attr);
	while (path && !__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &ready, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
