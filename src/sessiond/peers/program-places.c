/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/program-places.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "kernel/elf-places.h"
#include "sessiond/kernel/probes.h"
#include "sessiond/peers/peers.h"
#include "svc/become.h"

#define CHILD_S		  20 /* then the child ends, and the search too */
#define USER_SEARCHES_MAX 8
#define SEARCHES_MAX	  64
#define ANSWER_MAX	  60000 /* bytes of all places */
#define ERROR_BEGIN	  '!'	/* of an answer that is none */

struct target {
	char path[PATH_MAX];
	char provider[256]; /* "": a function */
	char symbol[256];
};

struct search {
	struct ky_list node; /* in peers->searches, until the child was reaped */
	struct target target;
	char name[64];			/* of the events */
	char identity[PROBES_FILE_MAX]; /* "": the child has not opened the file yet */
	char text[ANSWER_MAX + 1];
	uid_t uid;
	pid_t pid; /* of the child; 0: it was reaped */
	int socket;
	struct ky_watch watch;
	struct ky_timer timer;
	struct op *op; /* NULL: done */
};

/* Divides the text. Paths may have colons. */
static bool parse_place(struct target *t, const char *place)
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

/* --- in the child --- */

static void __attribute__((noreturn)) end_with_error(int socket, const char *text)
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
		end_with_error(socket, errno == ENOSYS
					       ? "members of the group need Linux 5.12 for that"
					       : strerror(errno));
	if (fstatfs(fd, &fs) < 0 || fs.f_type == FUSE_SUPER_MAGIC)
		end_with_error(socket, "only root may probe files that a program serves (FUSE)");
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 || !S_ISREG(st.stx_mode))
		end_with_error(socket, "it is no program");
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
		end_with_error(socket, "members of the group need Linux 5.12 for that");
	if (ky_become(peer->uid, peer->gid) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		end_with_error(STDIN_FILENO, strerror(errno));
	return STDIN_FILENO;
}

static void __attribute__((noreturn))
run_child(int socket, const struct ky_peer *peer, const struct target *t)
{
	struct ky_buf places = {.max = ANSWER_MAX};
	char path[32];
	struct elf e;
	unsigned left_out = 0;
	bool chooses;

	socket = become(socket, peer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", open_file(socket, t->path));
	if (elf_open(&e, path) < 0)
		end_with_error(socket, "it is not a 64-bit program or library of this machine");
	if (*t->provider)
		elf_sdt_places(&e, t->provider, t->symbol, &places, &left_out);
	else
		elf_function_places(&e, t->symbol, 0, &places, &chooses);
	if (places.error)
		end_with_error(socket, "it has too many places of that name");
	if (!places.len)
		end_with_error(socket,
			*t->provider ? "it has no such SDT probe" : "it has no such function");
	send(socket, places.data, places.len, MSG_NOSIGNAL);
	_exit(0);
}

/* --- in the daemon --- */

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

static void search_free(struct search *s)
{
	ky_timer_cancel(&s->timer);
	ky_watch_remove(&s->watch);
	ky_close(s->socket);
	ky_list_remove(&s->node);
	free(s);
}

/* Ends the search, but not before the child: a user may have so many of them. */
static void complete(struct search *s, int status, const char *text)
{
	struct op *op = s->op;

	s->op = NULL;
	ky_timer_cancel(&s->timer);
	ky_watch_remove(&s->watch);
	if (s->pid)
		kill(s->pid, SIGKILL);
	else
		search_free(s);
	op_done(op, status, text);
}

static void fail_search(struct search *s, int status, const char *why)
{
	char text[PATH_MAX + 256];

	snprintf(text, sizeof(text), "%s: %s", s->target.path, why);
	complete(s, status, text);
}

static void timed_out(struct ky_timer *t)
{
	fail_search(
		ky_container_of(t, struct search, timer), -ETIMEDOUT, "it cannot be read in time");
}

static void complete_found(struct search *s)
{
	struct ky_buf lines = {0};
	int ret = put_lines(&lines, &s->target, s->name, s->identity, s->text);

	if (ret < 0)
		fail_search(s, ret, strerror(-ret));
	else
		complete(s, 0, lines.data);
	ky_buf_deinit(&lines);
}

/* The child sends the file's identity, then the places, or an error. */
static void receive_answer(struct ky_watch *w, uint32_t events)
{
	struct search *s = ky_container_of(w, struct search, watch);
	ssize_t n = recv(s->socket, s->text, sizeof(s->text) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	s->text[KY_MAX(n, 0)] = '\0';
	if (n <= 0)
		fail_search(s, -EIO, "it cannot be read");
	else if (*s->text == ERROR_BEGIN)
		fail_search(s, -EINVAL, s->text + 1);
	else if (*s->identity)
		complete_found(s);
	else if ((size_t)n < sizeof(s->identity) && probes_is_identity(s->text))
		memcpy(s->identity, s->text, (size_t)n + 1);
	else
		fail_search(s, -EBADMSG, "it cannot be read");
}

/* Starts the child. Returns 0 or -errno. */
static int start_child(struct search *s, const struct ky_peer *peer)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	s->pid = fork();
	if (!s->pid)
		run_child(ends[1], peer, &s->target);
	close(ends[1]);
	s->socket = ends[0];
	return s->pid < 0 ? -errno : 0;
}

static bool has_room(const struct peers *p, uid_t uid)
{
	const struct search *s;
	unsigned n = 0, of_user = 0;

	ky_list_foreach (s, &p->searches, node) {
		n++;
		of_user += s->uid == uid;
	}
	return n < SEARCHES_MAX && of_user < USER_SEARCHES_MAX;
}

static struct search *search_new(const struct ky_peer *peer, const char *name)
{
	struct search *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	ky_list_init(&s->node);
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->uid = peer->uid;
	s->socket = -1;
	ky_timer_init(&s->timer, timed_out);
	return s;
}

static int begin_search(
	struct search *s, struct peers *p, const struct ky_peer *peer, struct op *op)
{
	struct ky_loop *loop = &p->env->loop;
	int ret = start_child(s, peer);

	if (!ret)
		ret = ky_watch_add(loop, &s->watch, s->socket, EPOLLIN, receive_answer);
	if (s->pid > 0)
		ky_list_append(&p->searches, &s->node);
	if (!ret) {
		ky_timer_set(loop, &s->timer, CHILD_S * 1000 * KY_NS_PER_MS);
		s->op = op;
	} else if (s->pid > 0) {
		kill(s->pid, SIGKILL);
	} else {
		search_free(s);
	}
	return ret;
}

int program_places_find(struct peers *p, const struct ky_peer *peer, const char *place,
	const char *name, struct op *op, char *why, size_t why_size)
{
	struct search *s = search_new(peer, name);
	int ret = -ENOMEM;

	if (s && (!parse_place(&s->target, place) || strpbrk(s->target.path, " \t\n#"))) {
		snprintf(why, why_size, "'%s' is not a place of a program", place);
		search_free(s);
		return -EINVAL;
	}
	if (s && !has_room(p, peer->uid)) {
		snprintf(why, why_size,
			"too many searches for places of programs are in progress: try again when they have ended");
		search_free(s);
		return -EBUSY;
	}
	if (s)
		ret = begin_search(s, p, peer, op);
	if (ret < 0)
		snprintf(why, why_size, "cannot look for the place: %s", strerror(-ret));
	return ret;
}

void program_places_reap(struct peers *p)
{
	struct search *s, *tmp;

	ky_list_foreach_safe (s, tmp, &p->searches, node) {
		if (!s->pid || waitpid(s->pid, NULL, WNOHANG) != s->pid)
			continue;
		s->pid = 0;
		if (!s->op)
			search_free(s); /* else its last messages are still to be read */
	}
}

void program_places_cancel(struct peers *p)
{
	struct search *s, *tmp;
	struct op *op;

	ky_list_foreach_safe (s, tmp, &p->searches, node) {
		op = s->op;
		if (s->pid)
			kill(s->pid, SIGKILL);
		search_free(s);
		op_done(op, -ECANCELED, "the session daemon is ending");
	}
}
