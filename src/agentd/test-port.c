/* SPDX-License-Identifier: MIT */
#include "agentd/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define OTHER_USER 54321

static char top[] = "/tmp/kymo-port-XXXXXX";
static char dir[64], path[80], why[PATH_MAX]; /* the port's file is in dir, which agentd makes */
static bool has_no_diag;		      /* the kernel has no sock_diag(7) */

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);

int __wrap_socket(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK || !has_no_diag)
		return __real_socket(domain, type, protocol);
	errno = EPROTONOSUPPORT;
	return -1;
}

/* --- the file --- */

static void write_file(const char *text)
{
	FILE *f;

	mkdir(dir, 0700);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void write_number(unsigned number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u\n", number);
	write_file(text);
}

/* The file has exactly the port's number, and the rights that agents of its users need. */
static void expect_file(const struct port *p)
{
	char text[16] = "", expected[16];
	FILE *f = fopen(path, "r");
	struct stat st;

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	snprintf(expected, sizeof(expected), "%u\n", p->number);
	assert_string_equal(text, expected);
	assert_int_equal(fstat(fileno(f), &st), 0);
	assert_int_equal(st.st_mode & 0777, geteuid() ? 0600 : 0644);
	fclose(f);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, geteuid() ? 0700 : 0755);
}

static void open_port(struct port *p)
{
	assert_int_equal(port_open(p, path, why, sizeof(why)), 0);
	assert_true(p->number >= 1024);
	expect_file(p);
}

/* --- sockets --- */

static struct sockaddr_in address_of(unsigned number)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)number),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Returns a socket with a port, which *ret_number has. Without `listens`, nobody can connect. */
static int bind_any(bool listens, unsigned *ret_number)
{
	struct sockaddr_in a = address_of(0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	if (listens)
		assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_number = ntohs(a.sin_port);
	return fd;
}

static int client_of(const struct port *p, int family)
{
	struct sockaddr_in a = address_of(p->number);
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = a.sin_port};
	struct pollfd waiting = {.fd = p->fd, .events = POLLIN};
	int fd = socket(family, SOCK_STREAM, 0);

	if (family == AF_INET6) {
		inet_pton(AF_INET6, "::ffff:127.0.0.1", &a6.sin6_addr);
		assert_int_equal(connect(fd, (struct sockaddr *)&a6, sizeof(a6)), 0);
	} else {
		assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	}
	assert_int_equal(poll(&waiting, 1, -1), 1);
	return fd;
}

static bool can_connect(unsigned number)
{
	const struct sockaddr_in a = address_of(number);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool ret = !connect(fd, (const struct sockaddr *)&a, sizeof(a));

	close(fd);
	return ret;
}

/* --- tests --- */

/* Returns the lowest descriptor that is free. */
static int free_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Java's sockets are of the second family. */
static void expect_user(const struct port *p, int family)
{
	uid_t uid = getuid() + 1;
	int client = client_of(p, family), fd = port_accept(p, &uid);

	assert_true(fd >= 0);
	assert_int_equal(uid, getuid());
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	close(client);
}

static void test_user(void **state)
{
	const int first = free_fd();
	struct port p;
	uid_t uid;

	open_port(&p);
	assert_int_equal(fcntl(p.fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(p.fd, F_GETFD), FD_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		has_no_diag = i;
		assert_int_equal(port_accept(&p, &uid), -EAGAIN);
		expect_user(&p, AF_INET);
		expect_user(&p, AF_INET6);
		/* The kernel says that root has what nobody has any more. */
		close(client_of(&p, AF_INET));
		assert_int_equal(port_accept(&p, &uid), -ESRCH);
	}
	has_no_diag = false;
	port_close(&p, false);
	assert_int_equal(access(dir, F_OK), -1);
	assert_false(can_connect(p.number));
	assert_int_equal(free_fd(), first);
}

/* Agents that were connected to a predecessor try its number again. */
static void test_successor(void **state)
{
	struct port p, next;
	int other;

	open_port(&p);
	close(p.fd); /* it was killed */
	open_port(&next);
	assert_int_equal(next.number, p.number);

	/* A file with another port's number is not removed; nor is a directory with other files. */
	write_number(next.number ^ 1);
	port_close(&next, false);
	assert_int_equal(next.fd, -1);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	open_port(&p);
	other = open(top, O_PATH);
	assert_int_equal(symlinkat("nothing", other, "lttng/other"), 0);
	port_close(&p, false);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(unlinkat(other, "lttng/other", 0), 0);
	assert_int_equal(unlinkat(other, "lttng", AT_REMOVEDIR), 0);
	close(other);
}

/* Texts that are no numbers of ports that kymo-agentd opens. */
static void test_odd_files(void **state)
{
	static const char *const texts[] = {"", "x\n", "0\n", "80\n", "1023\n", "65536\n", "-1\n"};
	struct port p;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		write_file(texts[i]);
		chmod(dir, geteuid() ? 0700 : 0755);
		open_port(&p);
		port_close(&p, false);
		assert_int_equal(access(dir, F_OK), -1);
	}
}

/* A server of the same user is left alone; a number that nobody serves is replaced. */
static void expect_used_numbers(void)
{
	unsigned number, held;
	char expected[16];
	struct port p;
	int server = bind_any(true, &number), holder = bind_any(false, &held);

	write_number(number);
	assert_int_equal(port_open(&p, path, why, sizeof(why)), -EADDRINUSE);
	snprintf(expected, sizeof(expected), "on port %u", number);
	assert_non_null(strstr(why, expected));
	assert_non_null(strstr(why, path));
	port_close(&p, false);
	assert_int_equal(access(path, F_OK), 0);
	close(server);

	write_number(held);
	chmod(dir, geteuid() ? 0700 : 0755);
	open_port(&p);
	assert_int_not_equal(p.number, held);
	port_close(&p, false);
	close(holder);
}

static void test_used_number(void **state)
{
	expect_used_numbers();
	has_no_diag = true;
	expect_used_numbers();
	has_no_diag = false;
}

/* Any user may listen on the number while no daemon does. Programs shall not connect there. */
static void test_number_of_another_user(void **state)
{
	unsigned number = 0;
	int channel[2], status;
	struct port p;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(channel), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setuid(OTHER_USER) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		bind_any(true, &number);
		if (write(channel[1], &number, sizeof(number)) != sizeof(number))
			_exit(1);
		pause();
		_exit(0);
	}
	close(channel[1]);
	assert_int_equal(read(channel[0], &number, sizeof(number)), sizeof(number));
	close(channel[0]);
	write_number(number);
	chmod(dir, 0755);
	open_port(&p);
	assert_int_not_equal(p.number, number);
	port_close(&p, false);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* A file that cannot be written is reported, and leaves nothing behind. */
static void test_errors(void **state)
{
	char name[PATH_MAX + 8];
	struct port p;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(port_open(&p, name, why, sizeof(why)), -ENAMETOOLONG);
	port_close(&p, false);
	snprintf(name, sizeof(name), "%s/none/lttng/agent.port", top);
	assert_int_equal(port_open(&p, name, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, name));
	assert_non_null(strstr(why, strerror(ENOENT)));
	port_close(&p, false);
	assert_int_equal(p.fd, -1);

	/* A directory has the file's name. */
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(port_open(&p, path, why, sizeof(why)), -EISDIR);
	port_close(&p, false);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing else is there */
}

static int make_top(void **state)
{
	if (!mkdtemp(top))
		return -1;
	snprintf(dir, sizeof(dir), "%s/lttng", top);
	snprintf(path, sizeof(path), "%s/agent.port", dir);
	return 0;
}

static int remove_top(void **state)
{
	return rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_successor),
		cmocka_unit_test(test_odd_files),
		cmocka_unit_test(test_used_number),
		cmocka_unit_test(test_number_of_another_user),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
