/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/program-places.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "kernel/elf-places.h"
#include "sessiond/kernel/probes.h"
#include "sessiond/peers/program.h"
#include "svc/loop.h"

#define CHILD_S	    2	  /* then the child ends, and the daemon does not wait any longer */
#define ANSWER_MAX  60000 /* bytes of all places */
#define ERROR_BEGIN '!'	  /* of an answer that is none */

struct target {
	char path[PATH_MAX];
	char provider[256]; /* "": a function */
	char symbol[256];
};

/* Divides the text. Paths may have colons. */
static bool parse(struct target *t, const char *place)
{
	bool is_sdt = !strncmp(place, "sdt:", 4);
	char text[PATH_MAX + 512], *symbol, *provider = NULL;

	if (snprintf(text, sizeof(text), "%s", is_sdt ? place + 4 : place) >= (int)sizeof(text) ||
		!(symbol = strrchr(text, ':')))
		return false;
	*symbol++ = '\0';
	if (is_sdt && !(provider = strrchr(text, ':')))
		return false;
	if (provider)
		*provider++ = '\0';
	return *text == '/' && *symbol && (!provider || *provider) &&
	       snprintf(t->path, sizeof(t->path), "%s", text) < (int)sizeof(t->path) &&
	       snprintf(t->symbol, sizeof(t->symbol), "%s", symbol) < (int)sizeof(t->symbol) &&
	       snprintf(t->provider, sizeof(t->provider), "%s", provider ? provider : "") <
		       (int)sizeof(t->provider);
}

/* ---- in the child ---- */

static void __attribute__((noreturn)) end(int socket, const char *text)
{
	char answer[256];

	snprintf(answer, sizeof(answer), "%c%s", ERROR_BEGIN, text);
	send(socket, answer, strlen(answer), MSG_NOSIGNAL);
	_exit(1);
}

/* Opens the file, and reports which one it is. */
static int open_file(int socket, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	char identity[PROBES_FILE_MAX];
	struct statfs fs;
	struct statx st;

	if (fd < 0)
		end(socket, errno == ENOSYS ? "members of the group need Linux 5.12 for that"
					    : strerror(errno));
	if (fstatfs(fd, &fs) < 0 || fs.f_type == FUSE_SUPER_MAGIC)
		end(socket, "only root may probe files that a program serves (FUSE)");
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 || !S_ISREG(st.stx_mode))
		end(socket, "it is no program");
	probes_identify(&st, identity);
	send(socket, identity, strlen(identity), MSG_NOSIGNAL);
	return fd;
}

/* Becomes the member, with nothing of the daemon's. */
static int become(int socket, const struct ky_peer *peer)
{
	ky_signals_reset();
	alarm(CHILD_S);
	if (dup2(socket, STDIN_FILENO) < 0 || syscall(SYS_close_range, 1, ~0u, 0) < 0)
		end(socket, "members of the group need Linux 5.12 for that");
	if (program_become(peer->uid, peer->gid) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		end(STDIN_FILENO, strerror(errno));
	return STDIN_FILENO;
}

static void __attribute__((noreturn))
search(int socket, const struct ky_peer *peer, const struct target *t)
{
	struct ky_buf places = {.max = ANSWER_MAX};
	char path[32];
	struct elf e;
	uint64_t offset;
	unsigned left_out = 0;

	socket = become(socket, peer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", open_file(socket, t->path));
	if (elf_open(&e, path) < 0)
		end(socket, "it is no program or library that this machine runs with 64 bits");
	if (*t->provider)
		elf_sdt_places(&e, t->provider, t->symbol, &places, &left_out);
	else if (!elf_find_function(&e, t->symbol, &offset))
		ky_buf_printf(&places, " 0x%llx\n", (unsigned long long)offset);
	if (places.error)
		end(socket, "it has too many places of that name");
	if (!places.len)
		end(socket, *t->provider ? "it has no such SDT probe" : "it has no such function");
	send(socket, places.data, places.len, MSG_NOSIGNAL);
	_exit(0);
}

/* ---- in the daemon ---- */

/* Starts the child as a child of init. Returns the socket to it, or -errno. */
static int start(const struct ky_peer *peer, const struct target *t)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (!pid) {
		if (fork())
			_exit(0);
		search(ends[1], peer, t);
	}
	close(ends[1]);
	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		return ends[0];
	close(ends[0]);
	return -EAGAIN;
}

/* Receives a message. Returns 0, or -errno with the reason. */
static int receive(int socket, uint64_t until, char *text, size_t size, char *why, size_t why_size)
{
	struct pollfd p = {.fd = socket, .events = POLLIN};
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);
	ssize_t n = -1;

	if (poll(&p, 1, now < until ? (int)((until - now) / KY_NS_PER_MS) : 0) == 1)
		n = recv(socket, text, size - 1, MSG_DONTWAIT);
	text[n > 0 ? n : 0] = '\0';
	if (n > 0 && *text != ERROR_BEGIN)
		return 0;
	snprintf(why, why_size, "%s", n > 0 ? text + 1 : "it cannot be read in time");
	return n > 0 ? -EINVAL : -ETIMEDOUT;
}

/* The child's line: a suffix of the name, a space, offset and arguments. */
static bool put_line(struct ky_buf *lines, const struct target *t, const char *name,
	const char *identity, const char *line)
{
	size_t suffix = strspn(line, "_0123456789"), n;
	const char *place = line + suffix + 1;

	if (line[suffix] != ' ' || strncmp(place, "0x", 2) != 0)
		return false;
	for (const char *p = place; *p; p++)
		if (*p < ' ' || *p == '#' || *p == 127)
			return false;
	n = lines->len;
	ky_buf_printf(
		lines, "p:%s%.*s %s%s:%s\n", name, (int)suffix, line, identity, t->path, place);
	return lines->len - n < PROBES_LINE_MAX;
}

static int put_lines(struct ky_buf *lines, const struct target *t, const char *name,
	const char *identity, char *places)
{
	unsigned n = 0;
	char *line;

	while ((line = strsep(&places, "\n")) && *line)
		if (++n > PROBES_MAX || !put_line(lines, t, name, identity, line))
			return -EBADMSG;
	return lines->error;
}

int program_places(struct ky_buf *lines, const struct ky_peer *peer, const char *place,
	const char *name, char *why, size_t why_size)
{
	uint64_t until = ky_clock_ns(CLOCK_MONOTONIC) + CHILD_S * 1000 * KY_NS_PER_MS;
	char identity[PROBES_FILE_MAX + 256], *places, reason[200] = "not enough memory";
	struct target t;
	int socket, ret;

	if (!parse(&t, place) || strpbrk(t.path, " \t\n#")) {
		snprintf(why, why_size, "'%s' is no place of a program", place);
		return -EINVAL;
	}
	places = malloc(ANSWER_MAX + 1);
	socket = places ? start(peer, &t) : -ENOMEM;
	ret = KY_MIN(socket, 0);
	if (!ret)
		ret = receive(socket, until, identity, sizeof(identity), reason, sizeof(reason));
	if (!ret && !probes_is_identity(identity))
		ret = -EBADMSG;
	if (!ret)
		ret = receive(socket, until, places, ANSWER_MAX + 1, reason, sizeof(reason));
	if (!ret)
		ret = put_lines(lines, &t, name, identity, places);
	if (ret < 0)
		snprintf(why, why_size, "%s: %s", t.path, reason);
	ky_close(socket);
	free(places);
	return ret;
}
