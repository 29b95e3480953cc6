/* SPDX-License-Identifier: MIT */
#include "agentd/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/kymo-port-XXXXXX";

static int client_of(const struct port *p)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)p->number)};
	struct pollfd waiting = {.fd = p->fd, .events = POLLIN};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(poll(&waiting, 1, -1), 1);
	return fd;
}

static void test_user(void **state)
{
	char path[64], why[128];
	struct port p;
	uid_t uid = getuid() + 1;
	int client, fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/port", dir);
	assert_int_equal(port_open(&p, path, why, sizeof(why)), 0);

	client = client_of(&p);
	fd = port_accept(&p, &uid);
	assert_true(fd >= 0);
	assert_int_equal(uid, getuid());
	close(fd);
	close(client);

	/* The kernel says that root has what nobody has any more. */
	close(client_of(&p));
	assert_int_equal(port_accept(&p, &uid), -ESRCH);
	port_close(&p, false);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
