/* SPDX-License-Identifier: MIT */
/*
 * kymo-agentd: lets LTTng-UST's agents in Python and Java programs record into Kymo's sessions. The
 * session daemon starts it while a session has a rule for such events, and it ends with the last of
 * these rules.
 *
 * It only switches agents on and off. The agents' messages are events of the programs' own, and
 * take the way of all events.
 *
 * One thread. An agent that does not read its commands is disconnected.
 */
#include <sys/socket.h>
#include <sys/uio.h>

#include "abi/agents.h"
#include "agentd/agent.h"
#include "agentd/port.h"
#include "base/standard-files.h"
#include "svc/log.h"
#include "svc/loop.h"
#include "svc/print.h"

#define AGENTS_MAX	1024u
#define USER_AGENTS_MAX 256u /* of one user */
#define REGISTER_NS	(10000 * KY_NS_PER_MS)
#define NAMES_MAX	(4u << 20) /* of the loggers of all agents */

static const char help[] =
	"kymo-agentd - record loggers of Python and Java with LTTng-UST's agents\n"
	"\n"
	"Usage: kymo-agentd FILE\n"
	"\n"
	"kymo-sessiond starts it. It writes the number of its port to FILE, and ends when its standard\n"
	"input, a connection to the session daemon, is closed at its other end.\n"
	"\n"
	"Options:\n"
	"  -h, --help     show this help\n"
	"  -V, --version  show the version\n";

struct peer {
	struct ky_list node;
	struct ky_watch watch;
	struct ky_timer timer; /* until it has registered */
	struct agent agent;
	uid_t uid;
	int fd;
};

static struct ky_loop loop;
static struct ky_watch daemon_watch, port_watch;
static struct ky_timer list_timer; /* set while a list is under way */
static struct port port;
static struct ky_list peers;
static struct agent_want wants[AGENT_WANTS_MAX];
static size_t n_wants;
static bool forget; /* the port, at the end */

static bool is_wanted(const struct peer *p)
{
	for (size_t i = 0; i < n_wants; i++)
		if (wants[i].domain == p->agent.domain &&
			(wants[i].uid == AGENT_ALL_USERS || wants[i].uid == p->uid))
			return true;
	return false;
}

/* --- messages to the daemon --- */

/*
 * If the daemon does not listen any more, daemon_readable() learns why. It waits for a daemon that
 * is slow; only agents that are to be switched wait with it.
 */
static void report_to_daemon(enum agent_message kind, const void *more, size_t n)
{
	const uint32_t word = kind;
	struct iovec parts[] = {{(void *)&word, sizeof(word)}, {(void *)more, n}};
	const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

	while (sendmsg(STDIN_FILENO, &m, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/* Returns the number of bytes of the first names that have room in a message. */
static size_t size_of_part(const char *names, size_t n)
{
	const char *end;

	if (n <= AGENT_NAMES_SIZE)
		return n;
	end = memrchr(names, '\0', AGENT_NAMES_SIZE);
	return end ? (size_t)(end - names) + 1 : AGENT_NAMES_SIZE;
}

/* Reports an agent's loggers, without a name that is cut. */
static void report_loggers(const struct peer *p, enum agent_answer answer)
{
	struct {
		struct agent_loggers head;
		char names[AGENT_NAMES_SIZE];
	} m = {{p->agent.domain, p->uid, p->agent.pid, answer}, {0}};
	const char *names = p->agent.names.data;
	const char *end = names ? memrchr(names, '\0', p->agent.names.len) : NULL;
	size_t left = end ? (size_t)(end - names) + 1 : 0, n;

	do {
		n = size_of_part(names, left);
		if (n)
			memcpy(m.names, names, n);
		report_to_daemon(AGENT_LOGGERS, &m, sizeof(m.head) + n);
		names += n;
		left -= n;
	} while (left);
}

static void list_end(void)
{
	struct peer *p;

	ky_timer_cancel(&list_timer);
	ky_list_foreach (p, &peers, node) {
		if (p->agent.list == AGENT_LIST_HERE)
			report_loggers(
				p, p->agent.names.error ? AGENT_ANSWERED_MORE : AGENT_ANSWERED);
		else if (p->agent.list != AGENT_LIST_NONE)
			report_loggers(p, AGENT_SILENT);
		agent_end_list(&p->agent);
	}
	report_to_daemon(AGENT_LISTED, NULL, 0);
}

static void list_timed_out(struct ky_timer *t)
{
	list_end();
}

/* Ends the list that is under way if all agents have answered. */
static void list_progress(void)
{
	const struct peer *p;

	if (!ky_timer_is_set(&list_timer))
		return;
	ky_list_foreach (p, &peers, node)
		if (p->agent.list == AGENT_LIST_DUE || p->agent.list == AGENT_LIST_ASKED)
			return;
	list_end();
}

/* --- agents --- */

static void peer_free(struct peer *p)
{
	ky_timer_cancel(&p->timer);
	agent_end_list(&p->agent);
	ky_watch_remove(&p->watch);
	ky_list_remove(&p->node);
	close(p->fd);
	free(p);
}

/* Sends what is due. Returns false if the agent does not read. */
static bool peer_send(struct peer *p)
{
	unsigned char out[AGENT_OUT_MAX];
	size_t n;

	while ((n = agent_command(&p->agent, is_wanted(p), out)))
		if (send(p->fd, out, n, MSG_NOSIGNAL) != (ssize_t)n)
			return false;
	return true;
}

static void peer_readable(struct ky_watch *w, uint32_t events)
{
	struct peer *p = ky_container_of(w, struct peer, watch);
	unsigned char buf[4096];
	ssize_t n = recv(p->fd, buf, sizeof(buf), 0);
	int ret;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	ret = n > 0 ? agent_receive(&p->agent, buf, (size_t)n) : -ECONNRESET;
	if (ret == -ENOTSUP) {
		ky_log_set_cause(p->uid);
		ky_warning("the agent of process %u speaks another version of the protocol",
			(unsigned)p->agent.pid);
		ky_log_set_cause(KY_LOG_NOBODY);
	}
	if (ret < 0 || !peer_send(p))
		peer_free(p);
	else if (p->agent.state != AGENT_NEW)
		ky_timer_cancel(&p->timer);
	list_progress();
}

static void peer_timed_out(struct ky_timer *t)
{
	peer_free(ky_container_of(t, struct peer, timer));
}

static bool has_room_for(uid_t uid)
{
	unsigned n = 0, n_user = 0;
	const struct peer *p;

	ky_list_foreach (p, &peers, node) {
		n++;
		n_user += p->uid == uid;
	}
	return n < AGENTS_MAX && n_user < USER_AGENTS_MAX;
}

/* Root's daemon serves all users, like its sessions; others serve their own user. */
static bool is_allowed(uid_t uid)
{
	return (geteuid() == 0 || uid == geteuid()) && has_room_for(uid);
}

static void peer_new(int fd, uid_t uid)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p) {
		close(fd);
		return;
	}
	p->fd = fd;
	p->uid = uid;
	ky_list_append(&peers, &p->node);
	ky_timer_init(&p->timer, peer_timed_out);
	ky_timer_set(&loop, &p->timer, REGISTER_NS);
	if (ky_watch_add(&loop, &p->watch, fd, EPOLLIN, peer_readable) < 0)
		peer_free(p);
}

static void port_readable(struct ky_watch *w, uint32_t events)
{
	uid_t uid;
	int fd = port_accept(&port, &uid);

	if (fd < 0)
		return;
	if (is_allowed(uid)) {
		peer_new(fd, uid);
		return;
	}
	ky_debug("a program of user %u may not connect", (unsigned)uid);
	close(fd);
}

/* Requests the loggers of all agents that have registered. They share the memory for the names. */
static void list_begin(void)
{
	struct peer *p, *tmp;
	size_t n = 0;

	if (ky_timer_is_set(&list_timer))
		return; /* its list answers this request, too */
	ky_timer_set(&loop, &list_timer, AGENT_LIST_MS * KY_NS_PER_MS);
	ky_list_foreach (p, &peers, node)
		n += p->agent.state != AGENT_NEW;
	ky_list_foreach_safe (p, tmp, &peers, node) {
		if (p->agent.state == AGENT_NEW)
			continue;
		agent_ask_list(&p->agent, NAMES_MAX / n);
		if (!peer_send(p))
			peer_free(p);
	}
	list_progress();
}

/* Returns false at the end: of the daemon, or of the last rule. */
static bool receive_wants(const struct agent_want *w, size_t n)
{
	n_wants = KY_MIN(n, (size_t)AGENT_WANTS_MAX);
	if (n)
		memcpy(wants, w, n_wants * sizeof(*w));
	forget = !n_wants;
	return n_wants > 0;
}

/* Likewise. Handles a message of the daemon. */
static bool receive_message(int flags)
{
	static struct {
		uint32_t kind;
		struct agent_want wants[AGENT_WANTS_MAX];
	} m;
	ssize_t n = recv(STDIN_FILENO, &m, sizeof(m), flags);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if ((size_t)n < sizeof(m.kind))
		return false;
	if (m.kind == AGENT_WANTS)
		return receive_wants(m.wants, ((size_t)n - sizeof(m.kind)) / sizeof(m.wants[0]));
	list_begin();
	return true;
}

static void daemon_readable(struct ky_watch *w, uint32_t events)
{
	struct peer *p, *tmp;

	if (!receive_message(MSG_DONTWAIT)) {
		ky_loop_stop(&loop);
		return;
	}
	ky_list_foreach_safe (p, tmp, &peers, node)
		if (!peer_send(p))
			peer_free(p);
	list_progress();
}

/* Disables all agents: their programs log at their own speed again. */
static void dismiss(void)
{
	struct peer *p, *tmp;

	n_wants = 0;
	ky_list_foreach_safe (p, tmp, &peers, node) {
		if (forget)
			peer_send(p);
		peer_free(p);
	}
}

static int serve_agents(void)
{
	int ret = ky_watch_add(&loop, &daemon_watch, STDIN_FILENO, EPOLLIN, daemon_readable);

	if (!ret)
		ret = ky_watch_add(&loop, &port_watch, port.fd, EPOLLIN, port_readable);
	if (ret < 0)
		return ret;
	report_to_daemon(AGENT_IS_READY, NULL, 0);
	return ky_loop_run(&loop);
}

static int run_agent(const char *path)
{
	char why[AGENT_TEXT_MAX];
	int ret = ky_loop_init(&loop);

	ky_list_init(&peers);
	ky_timer_init(&list_timer, list_timed_out);
	/* An agent that connects at once gets its command before the end of its registration. */
	if (ret < 0 || !receive_message(0))
		return ret;
	ret = port_open(&port, path, why, sizeof(why));
	if (ret < 0)
		report_to_daemon(AGENT_CANNOT_SERVE, why, strlen(why));
	else
		ret = serve_agents();
	dismiss();
	port_close(&port, !forget && ret >= 0);
	ky_timer_cancel(&list_timer);
	ky_watch_remove(&daemon_watch);
	ky_watch_remove(&port_watch);
	ky_loop_deinit(&loop);
	return ret;
}

int main(int argc, char **argv)
{
	const char *arg = argc == 2 ? argv[1] : "";

	ky_occupy_standard_files();
	ky_log_init("kymo-agentd", KY_LOG_INFO);
	if (!strcmp(arg, "-h") || !strcmp(arg, "--help"))
		ky_print_and_exit(help);
	if (!strcmp(arg, "-V") || !strcmp(arg, "--version"))
		ky_print_and_exit("kymo-agentd " KYMO_VERSION "\n");
	if (!*arg || *arg == '-') {
		fputs("kymo-agentd: one argument, a file, is needed; try 'kymo-agentd --help'\n",
			stderr);
		return 2;
	}
	return run_agent(arg) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
