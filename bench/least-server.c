/* SPDX-License-Identifier: MIT */
/*
 * least-server SOCKET: answers the programs tiny-least, without any logic: a message for a message,
 * with the ring and a page, the same for all. It prints "ready", and ends when its standard input
 * ends.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "least.h"

static int shared(const char *name, off_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	return fd < 0 || ftruncate(fd, size) < 0 ? -1 : fd;
}

static void answer(int fd, const int *fds)
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
	ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n <= 0) {
		close(fd);
		return;
	}
	memset(buf, 0, sizeof(buf));
	memset(&control, 0, sizeof(control));
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, 2 * sizeof(int));
	if (sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct epoll_event ev = {.events = EPOLLIN}, evs[64];
	int ep = epoll_create1(EPOLL_CLOEXEC),
	    s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int fds[2] = {shared("ring", LEAST_RING), shared("page", 4096)}, n;

	if (argc != 2 || strlen(argv[1]) >= sizeof(at.sun_path)) {
		fprintf(stderr, "usage: least-server SOCKET\n");
		return 2;
	}
	strcpy(at.sun_path, argv[1]);
	ev.data.fd = s;
	if (ep < 0 || s < 0 || fds[0] < 0 || fds[1] < 0 ||
		bind(s, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 4096) < 0 ||
		epoll_ctl(ep, EPOLL_CTL_ADD, s, &ev) < 0)
		return 1;
	ev.data.fd = STDIN_FILENO;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, STDIN_FILENO, &ev) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	while ((n = epoll_wait(ep, evs, 64, -1)) >= 0)
		for (int i = 0; i < n; i++) {
			if (evs[i].data.fd == STDIN_FILENO)
				return 0;
			if (evs[i].data.fd != s) {
				answer(evs[i].data.fd, fds);
				continue;
			}
			ev.data.fd = accept4(s, NULL, NULL, SOCK_CLOEXEC);
			if (ev.data.fd >= 0)
				epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev);
		}
	return 1;
}
