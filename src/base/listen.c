/* SPDX-License-Identifier: MIT */
#include "base/listen.h"

#include <netdb.h>
#include <stdio.h>

#include "base/text.h"
#include "base/util.h"

#define HOST_MAX 128

/* Splits "ADDRESS:PORT", "[ADDRESS]:PORT" or "PORT". Returns 0 or -EINVAL. */
static int split_address(const char *listen, char *host, size_t size, const char **ret_port)
{
	const char *colon = strrchr(listen, ':');
	size_t n = colon ? (size_t)(colon - listen) : 0;
	uint64_t number;

	*ret_port = colon ? colon + 1 : listen;
	if (ky_parse_number(*ret_port, UINT16_MAX, &number) < 0)
		return -EINVAL;
	if (!colon)
		return snprintf(host, size, "127.0.0.1"), 0;
	if (*listen == '[' && n > 1 && listen[n - 1] == ']') {
		listen++;
		n -= 2;
	}
	if (!n || n >= size)
		return -EINVAL;
	memcpy(host, listen, n);
	host[n] = '\0';
	return 0;
}

int ky_listen(const char *where, struct sockaddr_storage *ret_address)
{
	static const int on = 1;
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	socklen_t len = sizeof(*ret_address);
	struct addrinfo *found;
	const char *port;
	char host[HOST_MAX];
	int fd, e = split_address(where, host, sizeof(host), &port);

	if (e || getaddrinfo(host, port, &hints, &found))
		return -EINVAL;
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0 ||
		listen(fd, SOMAXCONN) < 0 ||
		getsockname(fd, (struct sockaddr *)ret_address, &len) < 0)
		e = -errno;
	freeaddrinfo(found);
	if (e)
		ky_close(fd);
	return e ? e : fd;
}
