/* SPDX-License-Identifier: MIT */
#include "agentd/port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"

#define BACKLOG	   64
#define TRIES	   20 /* for the port of a predecessor that exits now */
#define TRY_EACH   10 /* ms */
#define KEEP_S	   5
#define FIRST_PORT 1024

static unsigned read_number(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	unsigned number = 0;

	if (!f || fscanf(f, "%u", &number) != 1 || number < FIRST_PORT || number > UINT16_MAX)
		return 0;
	return number;
}

static struct sockaddr_in address_of(unsigned number)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

/* --- users of sockets --- */

/* As the kernel's tables show them. */
enum socket_state { ESTABLISHED = 1, LISTENING = 10 };

/*
 * Asks the kernel for this socket alone: /proc/net/tcp has all of the machine's, and one user can
 * make many. Returns false if this kernel has no sock_diag(7), or there is no such socket.
 */
static bool ask_kernel(const struct sockaddr_in *of, unsigned to, struct inet_diag_msg *ret)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 r;
	} request = {
		.head = {sizeof(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0},
		.r = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U},
	};
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg m;
		char attributes[1024];
	} reply;
	_cleanup_close_ int fd = socket(
		AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	ssize_t n;

	request.r.id.idiag_sport = of->sin_port;
	request.r.id.idiag_src[0] = of->sin_addr.s_addr;
	request.r.id.idiag_dport = htons((uint16_t)to);
	request.r.id.idiag_dst[0] = to ? htonl(INADDR_LOOPBACK) : 0;
	request.r.id.idiag_cookie[0] = request.r.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	if (fd < 0 || send(fd, &request, sizeof(request), 0) != sizeof(request))
		return false;
	n = recv(fd, &reply, sizeof(reply), 0);
	if (n < (ssize_t)offsetof(typeof(reply), attributes) ||
		reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	*ret = reply.m;
	return true;
}

/* An IPv4 address as /proc/net/tcp shows it, or at the end of one in /proc/net/tcp6. */
static bool is_address(const char *text, uint32_t address)
{
	static const char mapped[] = "0000000000000000FFFF0000";
	char hex[9];

	if (strlen(text) == strlen(mapped) + 8 && !strncmp(text, mapped, strlen(mapped)))
		text += strlen(mapped);
	snprintf(hex, sizeof(hex), "%08" PRIX32, address);
	return !strcmp(text, hex);
}

static bool find_in(const char *path, const struct sockaddr_in *of, unsigned to,
	enum socket_state state, uid_t *ret_uid)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	unsigned of_port, to_port, its_state, uid;
	char line[512], address[40];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*u: %39[0-9A-F]:%x %*[0-9A-F]:%x %x %*s %*s %*s %u", address,
			    &of_port, &to_port, &its_state, &uid) != 5 ||
			of_port != ntohs(of->sin_port) || to_port != to || its_state != state ||
			!is_address(address, of->sin_addr.s_addr))
			continue;
		*ret_uid = uid;
		return true;
	}
	return false;
}

/*
 * Finds the user of a socket in this state, of which the address is known, and to which port of
 * this machine it is connected; 0: to none. Of a socket that its process has closed, the kernel
 * says that it is root's: its state is another one. Returns false if there is no such socket.
 */
static bool find_user(
	const struct sockaddr_in *of, unsigned to, enum socket_state state, uid_t *ret_uid)
{
	struct inet_diag_msg m;

	/* The socket is of either kind. */
	if (!ask_kernel(of, to, &m))
		return find_in("/proc/net/tcp", of, to, state, ret_uid) ||
		       find_in("/proc/net/tcp6", of, to, state, ret_uid);
	*ret_uid = m.idiag_uid;
	return m.idiag_state == state;
}

/* --- the port --- */

/* Returns a socket that listens on the port, or on any free one if number is 0; or -errno. */
static int listen_on(unsigned number)
{
	struct sockaddr_in a = address_of(number);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, ret;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, BACKLOG))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/*
 * Returns true if this user's server listens on the port. Another user's is none that programs
 * should connect to: any user may listen there while no daemon does.
 */
static bool has_server(unsigned number)
{
	const struct sockaddr_in a = address_of(number);
	uid_t uid;

	return find_user(&a, 0, LISTENING, &uid) && uid == geteuid();
}

/* Listens on the predecessor's port, as soon as it has exited. -EADDRINUSE: another one serves. */
static int listen_again(unsigned number)
{
	const struct timespec t = {.tv_nsec = TRY_EACH * 1000000L};
	int fd = listen_on(number);

	for (int i = 0; i < TRIES && fd == -EADDRINUSE; i++) {
		nanosleep(&t, NULL);
		fd = listen_on(number);
	}
	if (fd == -EADDRINUSE && !has_server(number))
		return listen_on(0);
	return fd;
}

static int find_number(struct port *p)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	if (getsockname(p->fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	p->number = ntohs(a.sin_port);
	return 0;
}

/* Makes the directory of the file, but not those above it. */
static int make_directory(const char *path, mode_t mode)
{
	char dir[PATH_MAX], *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	return mkdir(dir, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* Replaces the file as a whole. Programs of all users read root's. */
static int write_number(const struct port *p)
{
	const mode_t mode = geteuid() ? 0600 : 0644;
	char new[PATH_MAX], text[16];
	int n = snprintf(new, sizeof(new), "%s.%d", p->path, (int)getpid()), ret, fd;

	if (n < 0 || (size_t)n >= sizeof(new))
		return -ENAMETOOLONG;
	ret = make_directory(p->path, geteuid() ? 0700 : 0755);
	if (ret < 0)
		return ret;
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "%u\n", p->number);
	errno = EIO; /* a part was written */
	if (write(fd, text, (size_t)n) != n || fchmod(fd, mode) < 0 || rename(new, p->path) < 0)
		ret = -errno;
	close(fd);
	if (ret < 0)
		unlink(new);
	return ret;
}

int port_open(struct port *p, const char *path, char *why, size_t why_size)
{
	const unsigned old = read_number(path);
	int ret;

	*p = (struct port){.path = path, .fd = listen_again(old)};
	if (p->fd == -EADDRINUSE) {
		snprintf(why, why_size,
			"%s is in use: another session daemon, or LTTng's, serves these programs, on port %u",
			path, old);
		return p->fd;
	}
	ret = p->fd < 0 ? p->fd : find_number(p);
	if (ret < 0) {
		snprintf(why, why_size, "cannot listen on 127.0.0.1: %s", strerror(-ret));
		return ret;
	}
	ret = write_number(p);
	if (ret < 0)
		snprintf(why, why_size, "cannot write %s: %s", path, strerror(-ret));
	return ret;
}

void port_close(struct port *p, bool keep)
{
	const struct timespec t = {.tv_sec = KEEP_S};
	char dir[PATH_MAX], *slash;

	p->fd = ky_close(p->fd);
	if (!p->number)
		return;
	if (keep)
		nanosleep(&t, NULL);
	if (read_number(p->path) != p->number || (keep && has_server(p->number)))
		return;
	unlink(p->path);
	snprintf(dir, sizeof(dir), "%s", p->path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	if (slash)
		rmdir(dir); /* fails if anything else is there */
}

int port_accept(const struct port *p, uid_t *ret_uid)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int fd = accept4(p->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (find_user(&from, p->number, ESTABLISHED, ret_uid))
		return fd;
	close(fd);
	return -ESRCH;
}
