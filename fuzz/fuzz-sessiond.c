/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the whole session daemon, except that it starts no processes. Applications and clients
 * send anything in any order over real sockets, while sessions are created and destroyed. The input
 * is a list of operations. The consumers are simulated here: they soon execute their orders.
 *
 * In each case the daemon must send exactly one reply to each line of a client. When the daemon has
 * ended, nothing is charged to any user, and no descriptor is open.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "sessiond/peers/app.h"
#include "sessiond/peers/recording.h"
#include "sessiond/control/client.h"
#include "sessiond/daemon.h"
#include "sessiond/model/quota.h"
#include "sessiond/recover.h"
#include "svc/log.h"

#define N_PROGRAMS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct daemon d;
static struct ky_timer pause_timer;

/* The peers' ends of the sockets; -1: not connected. */
static struct program {
	int fd;
	uint32_t query, cookie; /* of the last request to it */
} programs[N_PROGRAMS];
static struct {
	int fd;
	unsigned n_asked, n_answered; /* lines */
} client;

struct input {
	const uint8_t *data;
	size_t len;
};

/* --- consumers --- */

/* Releases these sets: no writer uses them any more. */
static void forget_retired(const struct session *s)
{
	struct ring_set *set, *tmp;
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach_safe (set, tmp, &c->sets, node)
			if (set->state == SET_RETIRED)
				ring_set_free(set);
}

static void consumer_answers(struct ky_timer *t)
{
	struct consumer *c = ky_container_of(t, struct consumer, restart);

	forget_retired(c->session);
	if (c->rotate_cookie) {
		c->rotate_cookie = 0;
		op_done(c->rotated, 0, "");
	}
	if (c->quit_cookie)
		c->ops->ended(c, false);
	else if (!c->ready) {
		c->ready = true;
		c->ops->ready(c, 0, "");
	}
}

void consumer_init(
	struct consumer *c, struct session *s, const char *output, const struct consumer_ops *ops)
{
	memset(c, 0, sizeof(*c));
	c->session = s;
	c->ops = ops;
	ky_list_init(&c->tickets);
	ky_timer_init(&c->restart, consumer_answers);
}

void consumer_deinit(struct consumer *c)
{
	ky_timer_cancel(&c->restart);
}

int consumer_spawn(struct consumer *c)
{
	ky_timer_set(&c->session->env->loop, &c->restart, 0);
	return 0;
}

void consumer_quit(struct consumer *c)
{
	c->quit_cookie = 1;
	consumer_spawn(c);
}

void consumer_snapshot(
	struct consumer *c, uint64_t max_size, const char *reason, struct barrier *copied)
{
	c->ready = true;
	consumer_quit(c);
}

void consumer_adopt(struct consumer *c, int fd)
{
	ky_close(fd);
}

void consumer_add_set(struct consumer *c, const struct ring_set *set)
{
}

void consumer_add_kernel_set(struct consumer *c, const struct kernel_set *set)
{
}

void consumer_send_timers(struct consumer *c, const struct channel *channel)
{
}

void consumer_flush(struct consumer *c, struct barrier *b)
{
}

void consumer_ask(struct consumer *c, struct barrier *b)
{
}

void consumer_set_bounds(struct consumer *c, const struct ky_cons_bounds *bounds)
{
	c->bounds = *bounds;
}

void consumer_rotate(
	struct consumer *c, uint64_t chunk, const char *archive, struct op *op, struct barrier *b)
{
	c->rotated = op;
	c->rotate_cookie = 1;
	consumer_spawn(c);
}

void consumer_retire(struct consumer *c, const struct ring_set *set)
{
	consumer_spawn(c);
}

void consumer_add_retired(
	struct consumer *c, const struct event_counts *counts, uint64_t chunk, uint64_t kept)
{
}

void consumer_chunk_ended(struct consumer *c, uint64_t chunk, bool cleared)
{
}

void consumers_reap_abandoned(void)
{
}

void consumer_reap(struct consumer *c)
{
}

/* --- the daemon's turns --- */

static void pause_loop(struct ky_timer *t)
{
	ky_loop_stop(&d.env.loop);
}

static void turn(void)
{
	for (int i = 0; i < 3; i++) {
		d.env.loop.stopped = false;
		ky_timer_set(&d.env.loop, &pause_timer, 0);
		if (ky_loop_run(&d.env.loop) < 0)
			abort();
	}
}

/* Moves the clock so far that all timers expire. */
static void pass_time(void)
{
	struct ky_timer *t;

	ky_list_foreach (t, &d.env.loop.timers, node)
		t->due_ns = 0;
}

static int connect_pair(int type, int *ret_fd)
{
	int fds[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		abort();
	*ret_fd = fds[0];
	return fds[1];
}

/* --- peers --- */

static void close_fds(struct msghdr *msg)
{
	int fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		for (size_t at = 0; at < c->cmsg_len - CMSG_LEN(0); at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			close(fd);
		}
}

static void note_order(struct program *p, const uint8_t *buf, size_t len)
{
	struct ky_reader r;
	int type = ky_msg_open(&r, buf, len);

	if (type < 0)
		abort(); /* the daemon must not send such a message */
	if (type == KY_APP_QUERY)
		p->query = ky_read_u32(&r);
	else if (type == KY_APP_START || type == KY_APP_STOP || type == KY_APP_DROP ||
		 type == KY_APP_STATEDUMP)
		p->cookie = ky_read_u32(&r);
}

static void program_read(struct program *p)
{
	static uint8_t buf[KY_MSG_MAX];
	char control[256];
	ssize_t n = 1;

	while (p->fd >= 0 && n > 0) {
		struct iovec iov = {buf, sizeof(buf)};
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};

		n = recvmsg(p->fd, &msg, MSG_DONTWAIT);
		if (n > 0) {
			close_fds(&msg);
			note_order(p, buf, (size_t)n);
		} else if (!n || errno != EAGAIN) {
			p->fd = ky_close(p->fd);
		}
	}
}

static void program_send(struct program *p, struct ky_writer *w)
{
	int len = ky_msg_end(w);

	if (p->fd >= 0 && len > 0 && send(p->fd, w->buf, (size_t)len, MSG_NOSIGNAL) < 0)
		return; /* the daemon has disconnected it */
}

static uint8_t take_byte(struct input *in)
{
	if (!in->len)
		return 0;
	in->len--;
	return *in->data++;
}

static struct ky_bytes take_bytes(struct input *in)
{
	size_t wanted = take_byte(in) * 2u, len = KY_MIN(wanted, in->len);
	struct ky_bytes b = {in->data, (uint32_t)len};

	in->data += len;
	in->len -= len;
	return b;
}

/* Writes valid descriptions, with names that other applications use too. */
static void write_events(struct ky_writer *w, uint8_t which)
{
	static const struct kymo_field number[] = {{KYMO_FIELD_UINT, 0, 8, 0, 0, "n", NULL}, {0}};
	static const struct kymo_field inner[] = {
		{KYMO_FIELD_VARIANT, 0, 0, 0, 0, "v", number}, {0}};
	static const struct kymo_field text[] = {{KYMO_FIELD_STRING, 0, 0, 0, 0, "s", NULL},
		{KYMO_FIELD_MEDIA, 0, 1, 0, 0, "m", "image/png"},
		{KYMO_FIELD_ARRAY, KYMO_FIELD_STRUCT, 0, 0, 2, "t", inner}, {0}};
	const char names[][2] = {"a", "b", "c", "d"};

	for (uint32_t i = 0; i < 4; i++) {
		const struct kymo_event ev = {.size = sizeof(ev),
			.loglevel = (int16_t)(which % 15),
			.provider = "p",
			.name = names[i],
			.fields = which >> i & 1 ? number : text};
		uint8_t buf[256];
		struct ky_writer desc = {.buf = buf, .cap = sizeof(buf)};

		ky_desc_encode(&desc, &ev);
		ky_write_u32(w, i * (which & 16 ? 1000 : 1));
		ky_write_bytes(w, (struct ky_bytes){buf, (uint32_t)desc.len});
	}
}

static void program_connect(struct program *p, uint8_t how)
{
	static uint8_t buf[4096], list[2048];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_writer events = {.buf = list, .cap = sizeof(list)};
	const struct ky_peer peer = {.uid = how & 1 ? 1000 : 0, .pid = getpid()};
	struct ky_app_hello hello = {.version = KY_PROTO_VERSION,
		.abi_bits = how & 2 ? 32 : 64,
		.caps = how >> 2,
		.procname = "program"};

	ky_close(p->fd);
	app_accept(&d.env, connect_pair(SOCK_SEQPACKET, &p->fd), &peer);
	if (how & 128)
		return;
	if (how & 64) {
		write_events(&events, how);
		hello.n_listed = 4;
		hello.listed = (struct ky_bytes){list, (uint32_t)events.len};
	}
	if (ky_app_hello_encode(&w, &hello) > 0)
		program_send(p, &w);
}

static void program_answer(struct program *p, uint8_t which)
{
	static uint8_t buf[4096], list[2048];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_writer events = {.buf = list, .cap = sizeof(list)};
	struct ky_app_events m = {.query = p->query, .more = which >> 7, .n = 4};

	write_events(&events, which);
	m.list = (struct ky_bytes){list, (uint32_t)events.len};
	if (ky_app_events_encode(&w, &m) > 0)
		program_send(p, &w);
}

static void program_says(struct program *p, struct input *in)
{
	static uint8_t buf[1024];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_bytes b;

	ky_msg_begin(&w, take_byte(in));
	b = take_bytes(in);
	ky_write_raw(&w, b.data, b.len);
	program_send(p, &w);
}

/* Sends a reply to the last request, with any list; or an ACK. */
static void program_nearly(struct program *p, struct input *in)
{
	static uint8_t buf[1024];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	uint8_t how = take_byte(in);

	if (how & 1) {
		ky_msg_begin(&w, KY_APP_ACK);
		ky_write_u32(&w, p->cookie);
		ky_write_i32(&w, how & 2 ? -how : 0);
	} else {
		ky_msg_begin(&w, KY_APP_EVENTS);
		ky_write_u32(&w, p->query);
		ky_write_u32(&w, how >> 7);
		ky_write_u32(&w, how >> 1 & 7);
		ky_write_bytes(&w, take_bytes(in));
	}
	program_send(p, &w);
}

static unsigned count_lines(const char *text, size_t len)
{
	unsigned n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

/* Reads the replies that have arrived. */
static void client_read(void)
{
	static char replies[65536];
	ssize_t n = 1;

	while (client.fd >= 0 && n > 0) {
		n = recv(client.fd, replies, sizeof(replies), MSG_DONTWAIT);
		if (n > 0)
			client.n_answered += count_lines(replies, (size_t)n);
		else if (!n || errno != EAGAIN)
			client.fd = ky_close(client.fd);
	}
	if (client.fd >= 0 && client.n_answered > client.n_asked)
		abort();
}

static void client_connect(void)
{
	client.n_asked = client.n_answered = 0;
	client_accept(&d.control, connect_pair(SOCK_STREAM, &client.fd),
		&(struct ky_peer){.pid = getpid()});
}

static void client_says(const void *line, size_t len)
{
	client_read();
	if (client.fd < 0)
		client_connect();
	if (send(client.fd, line, len, MSG_NOSIGNAL) != (ssize_t)len ||
		send(client.fd, "\n", 1, MSG_NOSIGNAL) != 1)
		/* it does not read, and the fuzzer must not wait for it */
		client.fd = ky_close(client.fd);
	client.n_asked += count_lines(line, len) + 1;
}

/* Waits without a time limit. */
static void await_answers(void)
{
	for (int i = 0; i < 1000 && client.fd >= 0 && client.n_answered < client.n_asked; i++) {
		pass_time();
		turn();
		for (int k = 0; k < N_PROGRAMS; k++)
			program_read(&programs[k]);
		client_read();
	}
	if (client.fd >= 0 && client.n_answered != client.n_asked)
		abort();
}

static const char *const lines[] = {
	"{\"command\":\"create\",\"session\":\"s\",\"output\":\"\"}",
	"{\"command\":\"create\",\"session\":\"t\",\"output\":\"/t\"}",
	"{\"command\":\"set-session\",\"session\":\"s\"}",
	"{\"command\":\"enable-channel\",\"channel\":\"c\",\"subbuf_size\":4096,\"num_subbuf\":2}",
	"{\"command\":\"disable-channel\",\"channel\":\"c\"}",
	"{\"command\":\"enable-event\",\"patterns\":[\"*\"]}",
	"{\"command\":\"enable-event\",\"patterns\":[\"p:a\",\"p:c*\"],\"channel\":\"c\",\"exclude\":[\"*d\"]}",
	"{\"command\":\"enable-event\",\"patterns\":[\"p:*\"],\"loglevel\":7}",
	"{\"command\":\"disable-event\",\"patterns\":[\"*\"]}",
	"{\"command\":\"start\"}",
	"{\"command\":\"stop\"}",
	"{\"command\":\"start\",\"all\":true}",
	"{\"command\":\"pause\"}",
	"{\"command\":\"resume\",\"all\":true}",
	"{\"command\":\"stop\",\"no_wait\":true}",
	"{\"command\":\"destroy\",\"no_wait\":true,\"all\":true}",
	"{\"command\":\"set\"}",
	"{\"command\":\"set\",\"blocking_timeout\":\"inf\",\"switch_timer\":\"500ms\",\"num_subbuf\":5}",
	"{\"command\":\"set\",\"channel\":\"c\",\"mode\":\"overwrite\",\"blocking_timeout\":0}",
	"{\"command\":\"destroy\"}",
	"{\"command\":\"destroy\",\"all\":true}",
	"{\"command\":\"status\"}",
	"{\"command\":\"list-events\"}",
	"{\"command\":\"list\"}",
	"{\"command\":\"hello\"}",
	"{\"command\":\"create\",\"session\":\"s\",\"output\":\"/o\",\"snapshot\":true}",
	"{\"command\":\"enable-channel\",\"channel\":\"o\",\"subbuf_size\":4096,\"mode\":\"overwrite\"}",
	"{\"command\":\"enable-channel\",\"channel\":\"c\",\"buffers\":\"process\",\"subbuf_size\":4194304}",
	"{\"command\":\"enable-channel\",\"channel\":\"o\",\"buffers\":\"thread\"}",
	"{\"command\":\"track\",\"vuid\":[\"1000\"]}",
	"{\"command\":\"untrack\",\"vuid\":[\"all\"]}",
	"{\"command\":\"enable-channel\",\"channel\":\"c_1\",\"tracefile_size\":4194304,\"tracefile_count\":2}",
	"{\"command\":\"rotate\",\"session\":\"t\"}",
	"{\"command\":\"rotate\",\"session\":\"t\",\"no_wait\":true}",
	"{\"command\":\"clear\",\"all\":true}",
	"{\"command\":\"enable-rotation\",\"session\":\"t\",\"timer\":1000,\"size\":1}",
	"{\"command\":\"disable-rotation\",\"size\":true}",
	"{\"command\":\"snapshot\",\"output\":\"/p\"}",
	"{\"command\":\"snapshot\",\"name\":\"n\",\"max_size\":5000}",
};

static void operate(struct input *in)
{
	uint8_t op = take_byte(in);
	struct program *p = &programs[op >> 3 & (N_PROGRAMS - 1)];
	struct ky_bytes b;
	const char *line;

	switch (op & 7) {
	case 0:
		program_connect(p, take_byte(in));
		break;
	case 1:
		program_says(p, in);
		break;
	case 2:
		program_nearly(p, in);
		break;
	case 3:
		program_answer(p, take_byte(in));
		break;
	case 4:
		p->fd = ky_close(p->fd);
		break;
	case 5:
		b = take_bytes(in);
		client_says(b.data, b.len);
		break;
	case 6:
		line = lines[take_byte(in) % KY_ARRAY_SIZE(lines)];
		client_says(line, strlen(line));
		break;
	case 7:
		pass_time();
		break;
	}
	turn();
	for (int i = 0; i < N_PROGRAMS; i++)
		program_read(&programs[i]);
}

static void begin(void)
{
	memset(&d, 0, sizeof(d));
	env_init(&d.env);
	if (ky_loop_init(&d.env.loop) < 0)
		abort();
	d.env.n_cpus = 2;
	d.env.clock = KY_CLOCK_MONOTONIC;
	quota_init(&d.env, 20 << 20); /* enough for some sets, not for all */
	d.run.lock_fd = d.run.watch_fd = -1;
	d.run.state_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	peers_init(&d.peers, &d.env, &d.run, &d.collector, &d.agents);
	kernel_init(&d.kernel, &d.env);
	control_init(&d.control, &d.env);
	d.peers.user_apps_max = USER_APPS_MAX;
	ky_timer_init(&d.stop_timer, pause_loop);
	recover_init(&d.recovery, &d.env);
	ky_timer_init(&pause_timer, pause_loop);
	for (int i = 0; i < N_PROGRAMS; i++)
		programs[i] = (struct program){.fd = -1};
	client.fd = -1;
}

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	ky_log_to_file(open("/dev/null", O_WRONLY | O_CLOEXEC), false);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, KY_MIN(size, (size_t)1024)};
	unsigned n_fds = count_fds();

	begin();
	while (in.len)
		operate(&in);
	await_answers();
	for (int i = 0; i < N_PROGRAMS; i++)
		ky_close(programs[i].fd);
	client.fd = ky_close(client.fd);
	d.run.state_fd = ky_close(d.run.state_fd); /* the daemon has no run directory here */
	daemon_deinit(&d);
	if (!ky_list_empty(&d.env.users.list))
		abort(); /* something is still charged to a user */
	if (count_fds() != n_fds)
		abort();
	return 0;
}
